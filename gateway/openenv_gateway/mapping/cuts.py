"""What is too large for an agent's host is cut where it can be seen: still valid JSON, never silent. Pure.

Hosts cut results on their own at 12 to 52 KB, in the middle of a JSON text. Sizes here are bytes of compact UTF-8 JSON.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import orjson

from openenv_client.frames import JsonObject

MARKER = "$cut"
"""`{"$cut": {"bytes": n, "read": uri}}` stands where n bytes of JSON were; without a URI, a text keeps its `head`."""

HEAD = 1000
"""Characters of a cut text that stay when there is nowhere to read the whole."""

_WORTH_CUTTING = 200
_BYTES_OF_MARKER = 100


class Encoded(JsonObject):
    """An object with its JSON, as `encode` writes it. Not to be changed: then `json` would be another object's."""

    def __init__(self, value: JsonObject, json: bytes) -> None:
        super().__init__(value)
        self.json = json


def encode(value: Any) -> bytes:
    """Compact JSON, non-ASCII kept. The value must hold the promises of `replies.parse_frame`, else TypeError."""
    return orjson.dumps(value)


def cut(value: JsonObject, limit: int, uri: str | None = None, whole: Collection[str] = ()) -> JsonObject:
    """`value` itself when its JSON has at most `limit` bytes, else a copy whose largest fields are replaced by markers.

    Only what is inside the top-level objects is cut: first fields at any depth, largest first; if that does not do, whole
    fields of the top-level objects; at last the objects named in `whole` themselves. Scalars and whatever is smaller than a
    marker stay, so a limit of less than about 1000 bytes may be overrun.
    """
    excess = len(encode(value)) - limit
    if excess <= 0:
        return value
    knife = _Knife(uri, min(HEAD, limit // 4))
    objects = {key: item for key, item in value.items() if isinstance(item, dict)}
    for levels in (None, 2):
        shrunk, saved = _shrink(objects, excess, knife, levels)
        if saved >= excess:
            return {**value, **shrunk}
    markers = {key: knife.marker(item, len(encode(item))) for key, item in objects.items() if key in whole}
    return {**value, **shrunk, **markers}


def cap_text(text: str, limit: int, uri: str | None = None) -> str:
    """`text` itself when it has at most `limit` bytes, else its beginning and a last line that says what is missing."""
    raw = text.encode()
    if len(raw) <= limit:
        return text
    kept = raw[:limit].decode(errors="ignore")
    where = f"; the whole can be read at {uri}" if uri else ""
    return f"{kept}\n[cut: the first {len(kept.encode())} of {len(raw)} bytes{where}]"


class _Knife:
    """How one value is replaced by its marker."""

    def __init__(self, uri: str | None, head: int) -> None:
        self._uri, self._head = uri, head

    def marker(self, value: Any, size: int) -> JsonObject:
        told: JsonObject = {"bytes": size}
        if self._uri is not None:
            told["read"] = self._uri
        elif isinstance(value, str):
            told["head"] = value[: min(self._head, len(value) // 2)]
        return {MARKER: told}


def _shrink(value: JsonObject, excess: int, knife: _Knife, levels: int | None) -> tuple[JsonObject, int]:
    """A copy with fields replaced, largest first, until `excess` bytes are saved; and how many were saved.

    `levels` is how many levels of fields are looked into before a field is replaced as a whole; None: as many as there are.
    """
    shrunk, saved = dict(value), 0
    sizes = {key: len(encode(item)) for key, item in value.items()}
    for key in sorted(sizes, key=sizes.__getitem__, reverse=True):
        if saved >= excess or sizes[key] < _WORTH_CUTTING:
            break
        shrunk[key], gained = _shrink_item(value[key], sizes[key], excess - saved, knife, levels)
        saved += gained
    return shrunk, saved


def _shrink_item(item: Any, size: int, excess: int, knife: _Knife, levels: int | None) -> tuple[Any, int]:
    below = None if levels is None else levels - 1
    if isinstance(item, dict) and below != 0:
        return _shrink(item, excess, knife, below)
    if isinstance(item, list) and below is None:
        found = _one_large_item(item, excess)
        if found is not None:
            at, item_size = found
            inner, gained = _shrink_item(item[at], item_size, excess, knife, None)
            return [*item[:at], inner, *item[at + 1 :]], gained
    marker = knife.marker(item, size)
    gained = size - len(encode(marker))
    return (marker, gained) if gained > 0 else (item, 0)


def _one_large_item(items: list[Any], excess: int) -> tuple[int, int] | None:
    """Index and size of the item whose cutting alone saves enough; None when the array must go as a whole."""
    sizes = [len(encode(item)) if isinstance(item, (str, dict)) else 0 for item in items]
    largest = max(range(len(sizes)), key=sizes.__getitem__, default=0)
    if not sizes or sizes[largest] - _BYTES_OF_MARKER < excess:
        return None
    return largest, sizes[largest]
