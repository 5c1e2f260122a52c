"""Pictures and sounds anywhere in a JSON value → MCP content blocks, with a marker left in their place. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from openenv_client.frames import JsonObject
from openenv_gateway.mapping.encoded import DATA_URI, FIRST_LETTERS, MIN_TEXT, media_block
from openenv_gateway.mapping.images import declared_picture, nested_picture

MARKER = "$content"
"""`{"$content": 1}` stands where a picture was: the index of its block in the result's `content`."""

MAX_BLOCKS = 20
MAX_LETTERS = 16 * 2**20
"""Bounds of one result: blocks, and base64 characters in all of them. What goes beyond stays data, and is cut like data."""

_BEGINNINGS = (*FIRST_LETTERS, DATA_URI)
_NUMBERS = (int, float)
_SCALARS = frozenset({int, float, bool, type(None)})


def may_hold_media(value: JsonObject) -> bool:
    """False if a Gallery would find nothing in the object, which spares the copying: most observations hold no media."""
    for key, item in value.items():
        kind = type(item)
        if kind is str:
            if len(item) >= MIN_TEXT and item.startswith(_BEGINNINGS):
                return True
        elif kind is dict:
            if may_hold_media(item):
                return True
        elif kind is list and item and (_shape_of(value, key) is not None or _array_may_hold_media(item)):
            return True
    return False


def _array_may_hold_media(values: list[Any]) -> bool:
    if type(values[0]) in _NUMBERS and type(values[-1]) in _NUMBERS:
        return False  # a row, see Gallery.take
    for item in values:
        kind = type(item)
        if kind is list or (kind is dict and may_hold_media(item)):
            return True
        if kind is str and len(item) >= MIN_TEXT and item.startswith(_BEGINNINGS):
            return True
    return False


class Gallery:
    """The pictures and sounds of one result, in the order in which they were found; equal ones are kept once.

    `first` is the index that the first block will have in `content`; whoever builds `content` puts `blocks` there. `present`
    are the blocks at the beginning of `content`: a picture that is among them is pointed to there.
    """

    def __init__(self, first: int = 1, present: Sequence[JsonObject] = ()) -> None:
        self.blocks: list[JsonObject] = []
        self._first = first
        self._index = {block["data"]: at for at, block in enumerate(present) if "data" in block}
        self._letters = 0

    def take(self, value: Any) -> Any:
        """A copy of `value` in which every picture and sound is `{"$content": index}`; `value` itself is not changed.

        Lists that begin and end with a number are not searched: they are data, and may be very long.
        """
        kind = type(value)  # exact types, not patterns: this runs for every value of every observation
        if kind is str:
            return value if len(value) < MIN_TEXT else self._place(media_block(value), value)
        if kind is list:
            return self._take_array(value)
        if kind is dict:
            return {
                key: item if type(item) in _SCALARS else self._take_field(value, key, item) for key, item in value.items()
            }
        return value

    def _take_field(self, owner: JsonObject, key: str, item: Any) -> Any:
        if type(item) is list:
            shape = _shape_of(owner, key)
            block = None if shape is None else declared_picture(item, shape)
            if block is not None:
                return self._place(block, item)
        return self.take(item)

    def _take_array(self, values: list[Any]) -> Any:
        if not values or _is_row(values):
            return values
        block = nested_picture(values)
        if block is not None:
            return self._place(block, values)
        return [item if type(item) in _SCALARS or _is_row(item) else self.take(item) for item in values]

    def _place(self, block: JsonObject | None, raw: Any) -> Any:
        if block is None:
            return raw
        data = block["data"]
        if data not in self._index:
            if len(self.blocks) == MAX_BLOCKS or self._letters + len(data) > MAX_LETTERS:
                return raw
            self._index[data] = self._first + len(self.blocks)
            self._letters += len(data)
            self.blocks.append(block)
        return {MARKER: self._index[data]}


def _shape_of(owner: JsonObject, key: str) -> Any:
    """What the owner of an array says of its shape, None if nothing."""
    return owner.get(f"{key}_shape", owner.get("shape"))


def _is_row(value: Any) -> bool:
    """Whether it is a list that begins and ends with a number."""
    return type(value) is list and len(value) > 0 and type(value[0]) in _NUMBERS and type(value[-1]) in _NUMBERS
