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

SCANNED = 10_000
"""Bytes up to which a value's JSON is looked at before the value itself is searched: of longer texts the search looks at the
beginning alone, which is quicker."""

_SIGNS = (b"[[", b'shape"', *(b'"' + letters.encode() for letters in (*FIRST_LETTERS, DATA_URI)))
"""One of these is in the compact JSON of every value in which there is a picture or sound."""
_NUMBERS = (int, float)
_SCALARS = frozenset({int, float, bool, type(None)})


def may_hold_media(body: bytes) -> bool:
    """Whether a Gallery could find something in the value of which `body` is the JSON as `cuts.encode` writes it. A quick look
    that spares the search: most observations hold no media."""
    return len(body) > SCANNED or any(sign in body for sign in _SIGNS)


class Gallery:
    """The pictures and sounds of one result, in the order in which they were found; equal ones are kept once.

    `first` is the index that the first block will have in `content`; whoever builds `content` puts `blocks` there. `present`
    are the blocks at the beginning of `content`: a picture that is among them is pointed to there. `has_taken`: whether
    anything was replaced yet.
    """

    def __init__(self, first: int = 1, present: Sequence[JsonObject] = ()) -> None:
        self.blocks: list[JsonObject] = []
        self._first = first
        self._index = {block["data"]: at for at, block in enumerate(present) if "data" in block}
        self._letters = 0
        self.has_taken = False

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
            shape = owner.get(f"{key}_shape", owner.get("shape"))
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
        self.has_taken = True
        return {MARKER: self._index[data]}


def _is_row(value: Any) -> bool:
    """Whether it is a list that begins and ends with a number."""
    return type(value) is list and len(value) > 0 and type(value[0]) in _NUMBERS and type(value[-1]) in _NUMBERS
