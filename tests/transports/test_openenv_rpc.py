"""OpenEnv's own JSON-RPC over POST, in front of a scripted environment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator
from testkit.gateways import Served, environment_settings, serving
from testkit.scripted import ScriptedServer, error, observation

from openenv_client.frames import JsonObject
from openenv_gateway.transports.openenv_rpc import is_openenv, names_openenv_session
from openenv_gateway_schemas import load

ERRORS = Draft202012Validator(load("error_data"))
MODERN = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}


class Client:
    """As OpenEnv's own: lone POSTs, no MCP header."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.http = httpx.AsyncClient(trust_env=False, timeout=10)
        self._id = 0

    async def send(self, method: str, params: JsonObject | None = None, **headers: str) -> dict[str, Any]:
        self._id += 1
        message = {"jsonrpc": "2.0", "method": method, "params": params or {}, "id": self._id}
        response = await self.http.post(self.url, json=message, headers=headers)
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        assert answer["id"] == self._id
        return answer

    async def ask(self, method: str, params: JsonObject | None = None) -> Any:
        answer = await self.send(method, params)
        assert "error" not in answer, answer
        return answer["result"]

    async def fail(self, method: str, params: JsonObject | None = None) -> Any:
        answer = await self.send(method, params)
        assert "result" not in answer, answer
        if "data" in answer["error"]:
            ERRORS.validate(answer["error"]["data"])
        return answer["error"]

    async def create(self) -> str:
        session: str = (await self.ask("openenv/session/create"))["session_id"]
        return session


def call(session: str, tool: str, **arguments: Any) -> JsonObject:
    return {"name": tool, "arguments": arguments, "session_id": session}


@pytest.fixture
async def client(served: Served) -> AsyncIterator[Client]:
    client = Client(served.url())
    yield client
    await client.http.aclose()


async def test_sessions_are_created_without_a_place_and_played_apart(server: ScriptedServer, client: Client) -> None:
    red, blue = await client.create(), await client.create()
    assert red != blue and len(red) >= 22, "128 random bits take 22 characters"
    assert server.sessions_opened == 0
    for session, amount in ((red, 1), (blue, 2), (red, 3)):
        await client.ask("tools/call", call(session, "step", add=amount))
    for session, count in ((red, 4), (blue, 2)):
        assert (await client.ask("tools/call", call(session, "state")))["data"]["state"] == {"count": count}
    assert server.sessions_opened == 2


async def test_a_call_is_a_step_with_reward_and_done_in_its_data(client: Client) -> None:
    session = await client.create()
    await client.ask("tools/call", call(session, "reset", seed=4))
    result = await client.ask("tools/call", call(session, "step", add=10))
    assert {key: result["data"][key] for key in ("reward", "done")} == {"reward": 10.0, "done": True}
    assert result["data"]["observation"] == {"count": 10, "echo": {"add": 10}}
    assert (result["is_error"], result["meta"]["openenv/step"], result["meta"]["openenv/session"]) == (False, 1, session)
    over = await client.fail("tools/call", call(session, "step", add=1))
    assert (over["code"], over["data"]["code"]) == (-32000, "EPISODE_OVER")


async def test_a_call_that_had_to_reset_first_says_so(client: Client) -> None:
    result = await client.ask("tools/call", call(await client.create(), "step", add=1))
    assert "was opened" in result["data"]["notice"]


async def test_tools_are_listed_without_handles(client: Client) -> None:
    tools = (await client.ask("tools/list", {"session_id": await client.create()}))["tools"]
    assert [tool["name"] for tool in tools] == ["reset", "step", "state"]
    assert all("session_id" not in tool["inputSchema"]["properties"] for tool in tools)
    assert tools[1]["inputSchema"]["properties"]["add"]["type"] == "integer"


async def test_a_closed_session_is_unknown_and_its_environment_session_ends(server: ScriptedServer, client: Client) -> None:
    session = await client.create()
    await client.ask("tools/call", call(session, "reset"))
    assert await client.ask("openenv/session/close", {"session_id": session}) == {"session_id": session, "closed": True}
    await server.until(lambda: server.sessions_open == 0)
    for method, params in (("openenv/session/close", {"session_id": session}), ("tools/call", call(session, "state"))):
        assert (await client.fail(method, params))["code"] == -32602


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("openenv/session/close", {}, -32602),
        ("openenv/session/close", {"session_id": 5}, -32602),
        ("openenv/session/close", {"session_id": "unknown"}, -32602),
        ("tools/list", {"session_id": "unknown"}, -32602),
        ("tools/call", {"session_id": "unknown", "name": "step"}, -32602),
    ],
)
async def test_a_session_that_is_none_is_a_bad_parameter(client: Client, method: str, params: JsonObject, code: int) -> None:
    assert (await client.fail(method, params))["code"] == code


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({}, '"name"'),
        ({"name": 5}, '"name"'),
        ({"name": "stop"}, "There is no tool 'stop'. Did you mean step?"),
        ({"name": "step", "arguments": {"add": "much"}}, "at add expected"),
        ({"name": "step", "arguments": []}, "expected"),
    ],
)
async def test_a_malformed_call_says_what_is_wrong_and_touches_nothing(
    server: ScriptedServer, client: Client, params: JsonObject, said: str
) -> None:
    fault = await client.fail("tools/call", {**params, "session_id": await client.create()})
    assert fault["code"] == -32602 and said in fault["message"], fault
    assert server.requests == []


async def test_a_method_without_an_id_is_refused(client: Client) -> None:
    response = await client.http.post(client.url, json={"jsonrpc": "2.0", "method": "openenv/session/create"})
    assert response.json()["error"]["code"] == -32600


async def test_a_failure_of_the_environment_is_an_error_with_cause_and_next_step() -> None:
    def respond(session: int, frame: JsonObject) -> JsonObject:
        return error("EXECUTION_ERROR", "the board fell") if frame["type"] == "step" else observation(count=0)

    async with ScriptedServer(respond=respond) as server, serving(environment_settings(server.url)) as served:
        client = Client(served.url())
        fault = await client.fail("tools/call", call(await client.create(), "step", add=1))
        assert fault["code"] == -32000 and "the board fell" in fault["message"]
        assert fault["data"]["next_step"] in fault["message"]
        await client.http.aclose()


async def test_the_outcome_that_a_client_did_not_wait_for_is_told_and_nothing_is_done_twice(
    server: ScriptedServer, served: Served, client: Client
) -> None:
    session = await client.create()
    await client.ask("tools/call", call(session, "reset"))
    server.hold_reply()
    with pytest.raises(httpx.ReadTimeout):
        await client.http.post(
            client.url,
            json={"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": call(session, "step", add=3)},
            timeout=0.5,
        )
    async with asyncio.timeout(5):
        server.release_reply()
        while served.gateway.busy:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    late = await client.fail("tools/call", call(session, "step", add=3))
    assert late["data"]["code"] == "PREVIOUS_ACTION_LATE" and '"count":3' in late["message"]
    assert (await client.ask("tools/call", call(session, "state")))["data"]["state"] == {"count": 3}


async def test_rewards_are_shown_as_the_operator_has_chosen(server: ScriptedServer) -> None:
    async with serving(environment_settings(server.url, mapping_reward="meta")) as served:
        client = Client(served.url())
        result = await client.ask("tools/call", call(await client.create(), "step", add=3))
        assert ("reward" in result["data"], result["meta"]["openenv/reward"]) == (False, 3.0)
        await client.http.aclose()


@pytest.mark.parametrize(
    ("method", "params", "is_one"),
    [
        ("openenv/session/create", None, True),
        ("openenv/session/close", {}, True),
        ("tools/call", {"session_id": "a"}, True),
        ("tools/list", {"session_id": "a"}, True),
        ("tools/call", {"session_id": 5}, False),
        ("tools/call", {"session_id": "a", "_meta": MODERN}, False),
        ("tools/call", {"name": "step", "arguments": {"session_id": "a"}}, False),
        ("initialize", {"session_id": "a"}, False),
        (None, None, False),
    ],
)
def test_requests_of_openenv_are_told_from_those_of_mcp(method: object, params: object, is_one: bool) -> None:
    assert is_openenv(method, params) is is_one
    assert names_openenv_session({"method": method, "params": params}, {}) is is_one


def test_in_an_mcp_session_tool_calls_are_mcps() -> None:
    headers = {"mcp-session-id": "s"}
    assert not names_openenv_session({"method": "tools/call", "params": {"session_id": "a"}}, headers)
    assert names_openenv_session({"method": "openenv/session/create"}, headers)
    assert not names_openenv_session([], {})
