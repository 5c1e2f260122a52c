"""openenv_gateway.demo.picture: a PNG that any decoder reads, small, and showing the board."""

from __future__ import annotations

import io

from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from openenv_gateway.demo.picture import CROSS, NOUGHT, PALETTE, PAPER, SIZE, TILE, board_png

BOARDS = st.text("XO.", min_size=9, max_size=9)


@given(BOARDS)
@settings(max_examples=25)
def test_the_picture_shows_each_cell_in_its_place(board: str) -> None:
    with Image.open(io.BytesIO(board_png(board))) as image:
        assert (image.format, image.size) == ("PNG", (SIZE, SIZE))
        pixels = image.convert("RGB")
    seen = [_mark(pixels.crop((x, y, x + TILE, y + TILE))) for y in (0, TILE, 2 * TILE) for x in (0, TILE, 2 * TILE)]
    assert "".join(seen) == board


@given(BOARDS)
@settings(max_examples=50)
def test_the_picture_stays_under_two_kilobytes_in_base64(board: str) -> None:
    assert len(board_png(board)) * 4 / 3 < 2048


def _mark(tile: Image.Image) -> str:
    colours = {colour for _, colour in tile.getcolors() or []}
    if _rgb(CROSS) in colours:
        return "X"
    assert _rgb(PAPER) in colours
    return "O" if _rgb(NOUGHT) in colours else "."


def _rgb(index: int) -> tuple[int, ...]:
    return tuple(PALETTE[3 * index : 3 * index + 3])
