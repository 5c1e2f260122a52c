"""JSON-RPC messages."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openenv_gateway.mapping.cuts import Encoded, encode
from openenv_gateway.mcp import jsonrpc
from openenv_gateway.mcp.jsonrpc import Notification, Request, Response, RpcError, decode, parse_message

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["jsonrpc", "id", "method", "params", "x"]), inner),
    max_leaves=12,
)


def test_the_three_kinds_of_message() -> None:
    assert parse_message({"jsonrpc": "2.0", "id": 7, "method": "ping"}) == Request(7, "ping", {})
    assert parse_message({"jsonrpc": "2.0", "method": "x", "params": {"a": 1}}) == Notification("x", {"a": 1})
    assert parse_message({"jsonrpc": "2.0", "id": "a", "result": {}}) == Response("a")


@pytest.mark.parametrize(
    ("value", "code", "words"),
    [
        ([], -32600, "one JSON object"),
        ("x", -32600, "one JSON object"),
        ({"id": 1, "method": "ping"}, -32600, "jsonrpc"),
        ({"jsonrpc": "2.0", "id": 1}, -32600, "method"),
        ({"jsonrpc": "2.0", "id": 1, "method": 5}, -32600, "method"),
        ({"jsonrpc": "2.0", "id": None, "method": "ping"}, -32600, "id"),
        ({"jsonrpc": "2.0", "id": True, "method": "ping"}, -32600, "id"),
        ({"jsonrpc": "2.0", "id": 1.5, "method": "ping"}, -32600, "id"),
        ({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}, -32602, "params"),
        ({"jsonrpc": "2.0", "method": "ping", "params": 5}, -32600, "params"),
    ],
)
def test_a_malformed_message_is_named(value: Any, code: int, words: str) -> None:
    with pytest.raises(RpcError, match=words) as caught:
        parse_message(value)
    assert caught.value.code == code


@pytest.mark.parametrize("body", [b"", b"{", b"{'a': 1}", b"\xff\xfe", b'{"a": NaN}', b"[" * 3000])
def test_what_is_no_json_is_a_parse_error(body: bytes) -> None:
    with pytest.raises(RpcError) as caught:
        decode(body)
    assert caught.value.code == jsonrpc.PARSE_ERROR


@given(json_values)
def test_any_json_value_is_a_message_or_a_named_fault(value: Any) -> None:
    try:
        message = parse_message(value)
    except RpcError as error:
        reply = orjson.loads(jsonrpc.error_message(jsonrpc.id_of(value), error))
        assert reply["error"]["code"] in (-32600, -32602)
        assert reply["id"] is None or isinstance(reply["id"], (str, int))
    else:
        assert isinstance(message, (Request, Notification, Response))


def test_an_object_that_comes_with_its_json_is_written_as_any_other() -> None:
    value = {"observation": {"text": "ä", "rows": [1, 2.5, None]}, "done": True}
    plain = {"content": [], "structuredContent": value}
    encoded = {"content": [], "structuredContent": Encoded(value, encode(value))}
    assert encoded == plain
    assert jsonrpc.result_message("a", encoded) == jsonrpc.result_message("a", plain)
