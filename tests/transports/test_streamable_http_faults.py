"""Bad requests, failing environments, retries: what Streamable HTTP answers, and that nothing is started or done twice."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from testkit.gateways import Served, environment_settings, serving
from testkit.http_agent import Agent, code_of
from testkit.scripted import ScriptedServer

from openenv_gateway.mcp.caller import Caller
from openenv_gateway.mcp.revisions import LATEST_HANDSHAKE

# --- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "headers", "status", "words"),
    [
        (b"{nope", {}, 400, "not JSON"),
        (b"[]", {}, 400, "send one message"),
        (b"5", {}, 400, "one JSON object"),
        (b"{}", {}, 400, "jsonrpc"),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', {"content-type": "text/plain"}, 415, "application/json"),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', {"accept": "text/html"}, 406, "Accept"),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', {"mcp-protocol-version": "1999-01-01"}, 400, "2025-11-25"),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', {"host": "evil.example"}, 421, "allowed_hosts"),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', {"origin": "http://evil.example"}, 403, "allowed_origins"),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', {"origin": "null"}, 403, "allowed_origins"),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"' + b"x" * 5_000_000 + b'"}}', {}, 413, "max_body_bytes"),
    ],
)
async def test_a_bad_request_is_told_what_is_wrong_and_starts_nothing(
    agent: Agent, server: ScriptedServer, content: bytes, headers: dict[str, str], status: int, words: str
) -> None:
    given = {"content-type": "application/json", "accept": "application/json", **headers}
    response = await agent.http.post(agent.url, content=content, headers=given)
    assert response.status_code == status
    assert words in response.text
    assert server.sessions_opened == 0


async def test_a_body_without_declared_length_is_bounded_too(agent: Agent) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b"x" * 100_000

    response = await agent.http.post(agent.url, content=pieces(), headers={"content-type": "application/json"})
    assert response.status_code == 413


@pytest.mark.parametrize("name", ["mcp-session-id", "mcp-protocol-version"])
async def test_a_doubled_routing_header_is_refused(agent: Agent, name: str) -> None:
    await agent.initialize()
    headers = [*agent.headers.items(), ("content-type", "application/json"), (name, "other")]
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    response = await agent.http.post(agent.url, content=body, headers=headers)
    assert (response.status_code, response.json()["error"]["code"]) == (400, -32020)


async def test_unknown_tools_and_wrong_arguments_touch_nothing(agent: Agent, server: ScriptedServer) -> None:
    await agent.initialize()
    unknown = await agent.post("tools/call", {"name": "stepp", "arguments": {}})
    assert unknown.json()["error"]["code"] == -32602
    assert "Did you mean step?" in unknown.json()["error"]["message"]
    wrong = await agent.call("step", add="many")
    assert code_of(wrong) == "INVALID_ARGUMENTS"
    for params in ({"name": 5}, {}, {"name": "step", "arguments": [1]}):
        assert (await agent.post("tools/call", params)).json()["error"]["code"] == -32602
    assert server.sessions_opened == 0


async def test_null_for_a_left_out_argument_and_a_number_in_a_string_are_taken(agent: Agent) -> None:
    await agent.initialize()
    reset = await agent.call("reset", seed=None, options_json=None)
    assert reset["structuredContent"]["observation"]["count"] == 0
    step = await agent.call("step", add="3", session_id=None)
    assert step["structuredContent"]["observation"] == {"count": 3, "echo": {"add": 3}}


async def test_pages_of_tools(server: ScriptedServer) -> None:
    async with serving(environment_settings(server.url), page_size=2) as served, Agent(served.url()) as agent:
        first = (await agent.post("tools/list")).json()["result"]
        second = (await agent.post("tools/list", {"cursor": first["nextCursor"]})).json()["result"]
        assert [tool["name"] for tool in (*first["tools"], *second["tools"])] == ["reset", "step", "state"]
        assert "nextCursor" not in second
        for cursor in ("0", "9", "x", 2):
            assert (await agent.post("tools/list", {"cursor": cursor})).json()["error"]["code"] == -32602


async def test_the_list_is_the_same_to_the_byte_for_every_caller(served: Served) -> None:
    bodies = set()
    for _ in range(3):
        async with Agent(served.url()) as agent:
            await agent.initialize()
            body = (await agent.post("tools/list")).json()
            bodies.add(json.dumps(body["result"]))
    assert len(bodies) == 1


# --- environments that fail ------------------------------------------------------------------------------------------


async def test_a_broken_factory_a_full_server_and_a_refused_websocket_are_told_to_the_agent() -> None:
    async with ScriptedServer(factory_error="no display") as broken, ScriptedServer(capacity=0) as full:
        settings = [
            environment_settings(broken.url, "broken"),
            environment_settings(full.url, "full", timeouts_queue_s=0.5),
        ]
        async with serving(*settings) as served:
            for name, code, words in (("broken", "FACTORY_ERROR", "no display"), ("full", "QUEUE_TIMEOUT", "capacity")):
                async with Agent(served.url(name)) as agent:
                    await agent.initialize()
                    result = await agent.call("reset")
                    assert code_of(result) == code
                    assert words in result["content"][0]["text"]


async def test_a_failing_list_is_an_error_and_never_an_empty_list(server: ScriptedServer) -> None:
    server.pages["/schema"] = {"detail": "gone"}
    async with serving(environment_settings(server.url)) as served, Agent(served.url()) as agent:
        await agent.initialize()
        response = (await agent.post("tools/list")).json()
        assert response["error"]["code"] == -32603
        assert response["error"]["data"]["next_step"]


# --- retries, leftovers, odd values ----------------------------------------------------------------------------------


async def test_a_retry_sent_while_the_dropped_call_still_runs_acts_once(agent: Agent, server: ScriptedServer) -> None:
    await agent.initialize()
    await agent.call("reset")
    server.hold_reply()
    with pytest.raises(httpx.ReadTimeout):
        body = {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "step", "arguments": {"add": 1}}}
        await agent.http.post(agent.url, json=body, headers=agent.headers, timeout=0.8)
    retry = asyncio.ensure_future(agent.call("step", add=1))
    await asyncio.sleep(0.1)  # the retry has to be in the lane's queue, of which nothing outside tells
    server.release_reply()
    assert code_of(await retry) == "PREVIOUS_ACTION_LATE"
    assert len(server.requests) == 2


async def test_lanes_that_could_not_be_opened_are_not_kept() -> None:
    async with ScriptedServer(factory_error="no display") as server, serving(environment_settings(server.url)) as served:
        lanes = served.gateway.endpoints["counting"].environment.lanes
        async with Agent(served.url()) as agent:
            for _ in range(5):
                await agent.modern("tools/call", {"name": "reset"})
        for name in range(5):
            async with Agent(f"{served.url()}?session={name}") as agent:
                await agent.call("step", add=1)
        assert len(lanes) == 0


async def test_calls_that_come_during_a_cold_start_are_executed_in_order(server: ScriptedServer) -> None:
    async with serving(environment_settings(server.url, lane_queue=100)) as served:
        endpoint = served.gateway.endpoints["counting"]
        caller = Caller(LATEST_HANDSHAKE, lane_name="one")

        async def step(number: int) -> None:
            await endpoint.kernel.answer(caller, "tools/call", {"name": "step", "arguments": {"add": 0, "number": number}})

        tasks = []
        for number in range(60):
            tasks.append(asyncio.create_task(step(number)))
            await asyncio.sleep(0)
        await asyncio.gather(*tasks)
        sent = [received.frame["data"]["number"] for received in server.requests if received.frame["type"] == "step"]
        assert sent == sorted(sent) and len(sent) == 60


@pytest.mark.parametrize("broken", ["\ud800", 2**64, float("nan")])
async def test_what_json_cannot_carry_in_a_servers_schema_hides_no_tools(server: ScriptedServer, broken: Any) -> None:
    action = {"type": "object", "properties": {"add": {"type": "integer", "default": broken, "description": "how many"}}}
    server.pages["/schema"] = {"action": action, "observation": {"type": "object"}, "state": {"type": "object"}}
    async with serving(environment_settings(server.url)) as served, Agent(served.url()) as agent:
        await agent.initialize()
        assert len((await agent.post("tools/list")).json()["result"]["tools"]) == 3


async def test_a_session_plays_on_with_an_adopted_lane_when_its_own_has_ended(agent: Agent, served: Served) -> None:
    await agent.initialize()
    own = (await agent.call("reset"))["structuredContent"]["session_id"]
    async with Agent(served.url()) as other:
        await other.initialize()
        handle = (await other.call("step", add=5))["structuredContent"]["session_id"]
    lanes = served.gateway.endpoints["counting"].environment.lanes
    lanes.discard(lanes.by_handle(own, "anonymous"))
    assert (await agent.call("step", add=1, session_id=handle))["structuredContent"]["observation"]["count"] == 6
    assert (await agent.call("step", add=1))["structuredContent"]["observation"]["count"] == 7


@pytest.mark.parametrize("query", ["?session=%FF", "?session=%C3"])
async def test_names_that_are_no_text_are_refused_and_not_taken_for_one_another(served: Served, query: str) -> None:
    async with Agent(served.url() + query) as agent:
        assert (await agent.post("tools/call", {"name": "reset"})).status_code == 400


async def test_two_accept_headers_are_one_list(agent: Agent) -> None:
    await agent.initialize()
    headers = [*agent.headers.items(), ("accept", "application/json"), ("accept", "text/html")]
    body = {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": None}
    assert (await agent.http.post(agent.url, json=body, headers=headers)).json()["result"] == {}
