"""Lists in pages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openenv_client.frames import JsonObject
from openenv_gateway.mcp.jsonrpc import INVALID_PARAMS, RpcError
from openenv_gateway.mcp.pages import page_of


@given(st.integers(0, 30), st.integers(1, 40))
def test_pages_together_are_the_list(count: int, size: int) -> None:
    items: list[JsonObject] = [{"name": str(number)} for number in range(count)]
    found: list[JsonObject] = []
    cursor, pages = None, 0
    while pages == 0 or cursor is not None:
        page = page_of("tools", items, cursor, size)
        assert len(page["tools"]) <= size
        found += page["tools"]
        cursor, pages = page.get("nextCursor"), pages + 1
    assert found == items
    assert pages == max(1, -(-count // size))


@pytest.mark.parametrize("cursor", ["", "0", "3", "-1", "x", "1" * 20, "²", 1, {}, "1.0"])
def test_a_cursor_that_no_page_gave_is_refused(cursor: object) -> None:
    with pytest.raises(RpcError) as caught:
        page_of("tools", [{}, {}, {}], cursor, 2)
    assert caught.value.code == INVALID_PARAMS
