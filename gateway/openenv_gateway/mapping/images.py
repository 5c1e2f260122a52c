"""Numeric arrays that are pictures → PNG, and the rule that tells a picture from a board. Pure.

The rule (recorded environments: Atari's flat 210×160×3 with a shape; against it connect4's 6×7, maze's 8×8 and snake's 20×20
and 20×20×8 boards, MiniGrid's 7×7×3, NetHack's 21×79 of character codes, all of which an agent wants as numbers):

- values are integers 0..255, or floats 0..1 (scaled), and the array is regular;
- colour (three channels last or first, or four last whose fourth is opaque alpha: a stack of four grey frames has the same
  shape) from 32×32 on;
- grey (two dimensions, or one channel) from 64×64 on, and if no shape field declares the array and its values are integers,
  only with a value above 15: a large board of a few symbols is no picture.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import chain
from typing import Any

from openenv_client.frames import JsonObject

MIN_COLOUR_SIDE = 32
MIN_GREY_SIDE = 64
MAX_SYMBOLS = 15
MAX_VALUES = 16_000_000
"""Numbers in one array; about a 50 MB frame. More stays data, and is cut like data."""

_MODES = {1: "L", 3: "RGB", 4: "RGBA"}


@dataclass(frozen=True, slots=True)
class Layout:
    """How a flat array of pixels is laid out. `planar`: channel by channel instead of pixel by pixel."""

    height: int
    width: int
    channels: int
    planar: bool = False


def declared_picture(values: list[Any], shape: object) -> JsonObject | None:
    """The ImageContent for a flat or nested array beside a shape field, None when the two are no picture."""
    dimensions = _dimensions(shape)
    layout = layout_of(dimensions)
    if layout is None:
        return None
    flat = _flatten(values, dimensions) if len(values) == dimensions[0] else values
    if flat is None or len(flat) != layout.height * layout.width * layout.channels:
        return None
    return _picture(flat, layout)


def nested_picture(values: list[Any]) -> JsonObject | None:
    """The ImageContent for nested H×W, H×W×C or C×H×W lists, None when they are no picture or are irregular."""
    if 3 < len(values) < MIN_COLOUR_SIDE:
        return None  # neither rows nor planes: the usual board costs no more than this
    dimensions = _nested_dimensions(values)
    layout = layout_of(dimensions)
    if layout is None:
        return None
    flat = _flatten(values, dimensions)
    if flat is None or (layout.channels == 1 and _is_board(flat)):
        return None
    return _picture(flat, layout)


def layout_of(dimensions: Sequence[int]) -> Layout | None:
    """How an array of these dimensions is laid out as a picture, None when it is none by the rule above."""
    match tuple(dimensions):
        case (height, width) | (height, width, 1) | (1, height, width) if min(height, width) >= MIN_GREY_SIDE:
            layout = Layout(height, width, 1)
        case (height, width, 3 | 4 as channels) if min(height, width) >= MIN_COLOUR_SIDE:
            layout = Layout(height, width, channels)
        case (3, height, width) if min(height, width) >= MIN_COLOUR_SIDE:
            layout = Layout(height, width, 3, planar=True)
        case _:
            return None
    return layout if layout.height * layout.width * layout.channels <= MAX_VALUES else None


def png_block(pixels: bytes, layout: Layout) -> JsonObject:
    """The ImageContent of raw pixels, as PNG at zlib level 6 (0.3 ms for an Atari screen)."""
    from PIL import Image  # noqa: PLC0415  (30 ms that environments without pictures need not wait for at start-up)

    size = (layout.width, layout.height)
    if layout.planar:
        area = layout.width * layout.height
        planes = [Image.frombytes("L", size, pixels[at : at + area]) for at in range(0, len(pixels), area)]
        picture = Image.merge(_MODES[layout.channels], planes)
    else:
        picture = Image.frombytes(_MODES[layout.channels], size, pixels)
    buffer = BytesIO()
    picture.save(buffer, "PNG", compress_level=6)
    return {"type": "image", "data": base64.b64encode(buffer.getvalue()).decode("ascii"), "mimeType": "image/png"}


def _picture(flat: list[Any], layout: Layout) -> JsonObject | None:
    pixels = _pixels(flat)
    if pixels is None or (layout.channels == 4 and pixels[3::4].count(255) < layout.height * layout.width):
        return None
    return png_block(pixels, layout)


def _is_board(flat: list[Any]) -> bool:
    return all(isinstance(value, int) and value <= MAX_SYMBOLS for value in flat)


def _dimensions(shape: object) -> list[int]:
    if not isinstance(shape, list) or not all(type(side) is int and side > 0 for side in shape):
        return []
    return shape


def _nested_dimensions(values: list[Any]) -> list[int]:
    """The lengths of the first list of each level: a guess that `_flatten` checks."""
    dimensions: list[int] = []
    node: Any = values
    while isinstance(node, list) and node and len(dimensions) < 4:
        dimensions.append(len(node))
        node = node[0]
    return dimensions


def _flatten(values: list[Any], dimensions: Sequence[int]) -> list[Any] | None:
    """All numbers of a nested array in order, None when it has not these dimensions throughout."""
    flat = values
    for side in dimensions[1:]:
        if any(type(row) is not list or len(row) != side for row in flat):
            return None
        flat = list(chain.from_iterable(flat))
    return flat


def _pixels(flat: list[Any]) -> bytes | None:
    """One byte a value: integers 0..255 as they are, floats 0..1 times 255. None when the array has anything else."""
    try:
        return bytes(flat)
    except (TypeError, ValueError):
        return _scaled(flat)


def _scaled(flat: list[Any]) -> bytes | None:
    if not all(type(value) in (float, int) for value in flat):
        return None
    low, high = min(flat), max(flat)
    if low < 0 or high > 255:
        return None
    if high <= 1:
        return bytes([round(value * 255) for value in flat])
    whole = [int(value) for value in flat]
    return bytes(whole) if whole == flat else None
