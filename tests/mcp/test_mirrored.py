"""Arguments that a request repeats in its headers: refused where the official package refuses, at the HTTP front as well."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.inbound import validate_mcp_param_headers
from testkit.gateways import environment_settings, serving
from testkit.http_agent import META, MODERN, Agent
from testkit.script import PAGES
from testkit.scripted import ScriptedServer

from openenv_gateway.mapping.mirrors import mirrors_of
from openenv_gateway.mcp.jsonrpc import HEADER_MISMATCH, RpcError
from openenv_gateway.mcp.mirrored import check_mirror

ARGUMENTS: dict[str, Any] = {
    "string": ["", "Hello", "SGVsbG8=", "=?base64?SGVsbG8=", "=?base64?SGVsbG8=?=", "grün", "42"],
    "integer": [0, 42, 42.0, -7, 2**60, 1.5, True],
    "boolean": [True, False],
}
HEADERS = [
    None, "", "Hello", "hello", "SGVsbG8=", "=?base64?SGVsbG8=", "=?base64?SGVsbG8=?=", "=?base64?SGVsbG8?=",
    "=?base64?SGVs!!!bG8=?=", "=?base64?Z3LDvG4=?=", "=?base64?PT9iYXNlNjQ/U0dWc2JHOD0/PQ==?=",
    "42", "42.0", "42.5", "0", "-7", "4.2e1", str(2**60), "1.5", "true", "True", "false",
]  # fmt: skip


@given(st.data(), st.sampled_from(sorted(ARGUMENTS)), st.sampled_from(HEADERS))
def test_an_argument_and_its_header_agree_where_the_official_package_says_so(
    data: st.DataObject, kind: str, header: str | None
) -> None:
    schema = {"type": "object", "properties": {"region": {"type": kind, "x-mcp-header": "Region"}}}
    value = data.draw(st.sampled_from([None, [], *ARGUMENTS[kind]]))
    (mirror,) = mirrors_of(schema)
    sent = {} if header is None else {"Mcp-Param-Region": header}
    refused = validate_mcp_param_headers(schema, {"region": value}, sent) is not None
    try:
        check_mirror(mirror, {"region": value}, header)
    except RpcError as error:
        assert refused
        assert error.code == HEADER_MISMATCH
    else:
        assert not refused


ACTION: dict[str, Any] = {
    "type": "object",
    "properties": {"add": {"type": "integer", "x-mcp-header": "Add"}, "to": {"type": "string", "x-mcp-header": "To"}},
    "required": ["add"],
}




@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer(pages={"/schema": {**PAGES["/schema"], "action": ACTION}}) as server:
        yield server


@pytest.fixture
async def agent(server: ScriptedServer) -> AsyncIterator[Agent]:
    async with serving(environment_settings(server.url, mapping_schemas="native")) as served:
        async with Agent(f"{served.url()}?session=s") as agent:
            yield agent


async def test_a_call_whose_headers_disagree_is_refused_before_anything_is_sent(agent: Agent, server: ScriptedServer) -> None:
    call = {"name": "step", "arguments": {"add": 3, "to": "Köln"}}
    listed = (await agent.modern("tools/list")).json()["result"]["tools"]
    shown = next(tool for tool in listed if tool["name"] == "step")["inputSchema"]
    assert ACTION["properties"].items() <= shown["properties"].items()
    wrong: list[dict[str, str]] = [{}, {"mcp_param_add": "3"}, {"mcp_param_add": "4", "mcp_param_to": "=?base64?S8O2bG4=?="}]
    for headers in wrong:
        response = await agent.modern("tools/call", call, **headers)
        assert (response.status_code, response.json()["error"]["code"]) == (400, HEADER_MISMATCH)
    assert server.requests == []
    right = await agent.modern("tools/call", call, mcp_param_add="3.0", mcp_param_to="=?base64?S8O2bG4=?=")
    assert right.json()["result"]["structuredContent"]["observation"]["echo"] == call["arguments"]


FAILING: list[dict[str, Any]] = [{"name": "nothing"}, {"name": "step", "arguments": {}}, {"name": "step", "arguments": [1]}]


@pytest.mark.parametrize("params", FAILING)
async def test_a_call_that_fails_anyway_gets_its_own_error(agent: Agent, params: dict[str, Any]) -> None:
    answer = (await agent.modern("tools/call", params)).json()
    assert answer.get("error", {}).get("code") != HEADER_MISMATCH
    assert "error" in answer or answer["result"]["isError"]


async def test_a_header_that_comes_twice_is_refused(agent: Agent) -> None:
    params = {"name": "step", "arguments": {"add": 3}, "_meta": META}
    routing = {"mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": "step", "accept": "*/*"}
    twice = [*routing.items(), ("mcp-param-add", "3"), ("mcp-param-add", "3")]
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    response = await agent.http.post(agent.url, json=body, headers=twice)
    assert (response.status_code, response.json()["error"]["code"]) == (400, HEADER_MISMATCH)
