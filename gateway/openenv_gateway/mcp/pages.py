"""Lists in pages. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from openenv_client.frames import JsonObject
from openenv_gateway.mcp.jsonrpc import INVALID_PARAMS, RpcError


def page_of(key: str, items: Sequence[JsonObject], cursor: object, size: int) -> JsonObject:
    """{key: at most `size` of the items}, with `nextCursor` while there are more. Raises RpcError for a cursor that no page of
    this list gave."""
    start = _start(cursor, len(items))
    page: JsonObject = {key: list(items[start : start + size])}
    if start + size < len(items):
        page["nextCursor"] = str(start + size)
    return page


def _start(cursor: object, count: int) -> int:
    if cursor is None:
        return 0
    if not isinstance(cursor, str) or not cursor.isdecimal() or len(cursor) > 9 or not 0 < int(cursor) < count:
        raise RpcError(INVALID_PARAMS, "Invalid cursor: use the nextCursor of the previous page")
    return int(cursor)
