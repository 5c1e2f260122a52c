"""Era and header checks. The oracle is the official SDK's own ladder: both must agree on every request."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.inbound import InboundLadderRejection, classify_inbound_request, decode_header_value, encode_header_value

from openenv_gateway.mcp.jsonrpc import RpcError
from openenv_gateway.mcp.ladder import climb, decode_value, envelope_revision, handshake_revision, is_modern_request
from openenv_gateway.mcp.revisions import LATEST_HANDSHAKE, Revision, negotiate

VERSION = "2026-07-28"
META = {"io.modelcontextprotocol/protocolVersion": VERSION, "io.modelcontextprotocol/clientCapabilities": {}}
HEADERS = {"mcp-protocol-version": VERSION, "mcp-method": "tools/call", "mcp-name": "step"}


def verdict(headers: dict[str, str], method: str, params: dict[str, Any]) -> str | int:
    try:
        return climb(headers, method, params).value
    except RpcError as error:
        return error.code


def test_a_request_whose_copies_agree_passes() -> None:
    assert verdict(HEADERS, "tools/call", {"name": "step", "_meta": META}) == VERSION


@pytest.mark.parametrize("name", ["mcp-protocol-version", "mcp-method", "mcp-name"])
def test_a_missing_or_different_header_is_a_mismatch(name: str) -> None:
    params = {"name": "step", "_meta": META}
    assert verdict({key: value for key, value in HEADERS.items() if key != name}, "tools/call", params) == -32020
    assert verdict({**HEADERS, name: "other"}, "tools/call", params) == -32020


def test_a_name_in_base64_is_unwrapped() -> None:
    params = {"name": "zug über", "_meta": META}
    assert verdict({**HEADERS, "mcp-name": encode_header_value("zug über")}, "tools/call", params) == VERSION


def test_an_unsupported_version_names_what_is_supported() -> None:
    meta = {**META, "io.modelcontextprotocol/protocolVersion": "2099-01-01"}
    with pytest.raises(RpcError) as caught:
        climb({**HEADERS, "mcp-protocol-version": "2099-01-01"}, "tools/call", {"name": "step", "_meta": meta})
    assert caught.value.code == -32022
    assert caught.value.data == {"supported": [VERSION], "requested": "2099-01-01"}


some_version = st.sampled_from([VERSION, "2025-11-25", "2099-01-01", 5, None])
some_headers = st.dictionaries(
    st.sampled_from(["mcp-protocol-version", "mcp-method", "mcp-name", "x"]),
    st.sampled_from(
        [VERSION, "2025-11-25", "2099-01-01", "tools/call", "tools/list", "step", "=?base64?c3RlcA==?=", "=?base64?!?="]
    ),
)
some_params: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["step", "reset", None, 3]),
        "_meta": st.none()
        | st.fixed_dictionaries(
            {},
            optional={
                "io.modelcontextprotocol/protocolVersion": some_version,
                "io.modelcontextprotocol/clientCapabilities": st.just({}),
            },
        ),
    },
)


@given(some_headers, st.sampled_from(["tools/call", "tools/list", "server/discover"]), some_params)
def test_the_ladder_agrees_with_the_official_one(headers: dict[str, str], method: str, params: dict[str, Any]) -> None:
    theirs = classify_inbound_request({"method": method, "params": params}, headers=headers)
    expected: str | int = theirs.code if isinstance(theirs, InboundLadderRejection) else theirs.protocol_version
    assert verdict(headers, method, params) == expected


@given(st.text() | st.sampled_from(["=?base64??=", "=?base64?eA?=", "=?base64?eB==?=", "=?base64?/w==?="]))
def test_header_values_are_decoded_as_the_official_decoder_does(value: str) -> None:
    assert decode_value(value) == decode_header_value(value)
    assert decode_value(encode_header_value(value)) == value


def test_the_era_is_told_by_the_header_or_by_an_envelope() -> None:
    assert is_modern_request(VERSION, {})
    assert is_modern_request(None, {"params": {"_meta": META}})
    assert not is_modern_request(None, {"params": {"_meta": {"progressToken": 1}}})
    assert not is_modern_request("2025-11-25", {"method": "ping"})
    assert not is_modern_request(None, [1])


def test_transports_without_headers_read_the_envelope_alone() -> None:
    assert envelope_revision({"_meta": META}) is Revision.V2026_07_28
    for version, code in (("2099-01-01", -32022), (7, -32602)):
        with pytest.raises(RpcError) as caught:
            envelope_revision({"_meta": {**META, "io.modelcontextprotocol/protocolVersion": version}})
        assert caught.value.code == code


def test_handshake_versions() -> None:
    assert handshake_revision(None) is LATEST_HANDSHAKE
    assert handshake_revision("2025-03-26") is Revision.V2025_03_26
    with pytest.raises(RpcError, match="2025-06-18"):
        handshake_revision("1999-01-01")
    assert negotiate("2025-06-18") is Revision.V2025_06_18
    assert negotiate("1999-01-01") is LATEST_HANDSHAKE
    assert negotiate("2026-07-28") is LATEST_HANDSHAKE
