"""MCP Streamable HTTP, both eras, spoken byte by byte to a real HTTP server in front of a scripted environment."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import mcp_types
import pytest
from jsonschema import Draft202012Validator
from testkit.gateways import Served, environment_settings, serving
from testkit.scripted import ScriptedServer

from openenv_gateway.mcp.caller import Caller
from openenv_gateway.mcp.revisions import LATEST_HANDSHAKE
from openenv_gateway_schemas import load

MODERN = "2026-07-28"
META = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}
RESULTS = Draft202012Validator(load("tool_result"))
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer() as server:
        yield server


@pytest.fixture
async def served(server: ScriptedServer) -> AsyncIterator[Served]:
    async with serving(environment_settings(server.url)) as served:
        yield served


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something inside the gateway that no event tells."""
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


class Agent:
    """A JSON-RPC client that shows everything."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.http = httpx.AsyncClient(trust_env=False)
        self.headers: dict[str, str] = {}
        self._id = 0

    async def __aenter__(self) -> Agent:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.http.aclose()

    async def post(self, method: str, params: dict[str, Any] | None = None, **headers: str | None) -> httpx.Response:
        """One request. Headers as keyword arguments with `_` for `-`; None leaves one out."""
        self._id += 1
        message = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params or {}}
        given = {"accept": "application/json, text/event-stream", **self.headers}
        given |= {name.replace("_", "-"): value for name, value in headers.items() if value is not None}
        given = {name: value for name, value in given.items() if headers.get(name.replace("-", "_"), "") is not None}
        return await self.http.post(self.url, json=message, headers=given)

    async def initialize(self, version: str = "2025-11-25") -> str:
        response = await self.post("initialize", {**HELLO, "protocolVersion": version})
        assert response.status_code == 200, response.text
        self.headers["mcp-session-id"] = response.headers["mcp-session-id"]
        self.headers["mcp-protocol-version"] = response.json()["result"]["protocolVersion"]
        return self.headers["mcp-session-id"]

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The result of one tools/call in the handshake era."""
        response = await self.post("tools/call", {"name": tool, "arguments": arguments})
        assert response.status_code == 200, response.text
        result: dict[str, Any] = response.json()["result"]
        mcp_types.CallToolResult.model_validate(result)
        if "structuredContent" in result:
            RESULTS.validate(result["structuredContent"])
        return result

    async def modern(self, method: str, params: dict[str, Any] | None = None, /, **headers: str | None) -> httpx.Response:
        """One request of revision 2026-07-28."""
        params = {**(params or {}), "_meta": {**META, **(params or {}).get("_meta", {})}}
        named = {"mcp_name": params["name"]} if method == "tools/call" else {}
        routing: dict[str, str | None] = {"mcp_protocol_version": MODERN, "mcp_method": method, **named, **headers}
        return await self.post(method, params, **routing)


@pytest.fixture
async def agent(served: Served) -> AsyncIterator[Agent]:
    async with Agent(served.url()) as agent:
        yield agent


def code_of(result: dict[str, Any]) -> str:
    assert result["isError"] is True
    assert "structuredContent" not in result
    code: str = result["_meta"]["openenv/error"]["code"]
    assert result["content"][0]["text"].startswith(code)
    return code


# --- handshake era ---------------------------------------------------------------------------------------------------


async def test_a_session_of_the_handshake_era_plays_an_episode(agent: Agent) -> None:
    await agent.initialize()
    assert (await agent.post("ping")).json()["result"] == {}
    tools = (await agent.post("tools/list")).json()["result"]["tools"]
    assert [tool["name"] for tool in tools] == ["reset", "step", "state"]
    assert "session_id" in tools[1]["inputSchema"]["properties"]
    assert "session_id" not in tools[1]["inputSchema"].get("required", [])
    reset = await agent.call("reset")
    assert reset["structuredContent"]["observation"]["count"] == 0
    step = await agent.call("step", add=10)
    assert step["structuredContent"] == {
        "observation": {"count": 10, "echo": {"add": 10}},
        "reward": 10.0,
        "done": True,
        "next": "call reset to start the next episode",
    }
    assert json.loads(step["content"][0]["text"]) == step["structuredContent"]
    assert step["_meta"]["openenv/step"] == 1
    assert (await agent.call("state"))["structuredContent"] == {"state": {"count": 10}}


@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18", "2025-11-25"])
async def test_each_handshake_revision_is_spoken_as_it_was(agent: Agent, version: str) -> None:
    await agent.initialize(version)
    assert agent.headers["mcp-protocol-version"] == version
    (tool, *_) = (await agent.post("tools/list")).json()["result"]["tools"]
    result = await agent.call("reset")
    is_structured = version != "2025-03-26"
    assert ("outputSchema" in tool, "structuredContent" in result) == (is_structured, is_structured)
    assert json.loads(result["content"][0]["text"])["observation"]["count"] == 0


async def test_an_unknown_revision_is_answered_with_the_newest_of_the_era(agent: Agent) -> None:
    await agent.initialize("1999-01-01")
    assert agent.headers["mcp-protocol-version"] == "2025-11-25"


async def test_initialize_with_a_dead_session_id_mints_a_new_one(agent: Agent) -> None:
    agent.headers["mcp-session-id"] = "dead"
    identity = await agent.initialize()
    assert len(identity) >= 32


async def test_sessions_unknown_missing_and_ended(agent: Agent) -> None:
    missing = await agent.post("tools/call", {"name": "reset"})
    assert missing.status_code == 400
    assert all(way in missing.json()["error"]["message"] for way in ("initialize", "?session=NAME", "session_id"))
    assert (await agent.post("tools/list")).status_code == 200
    await agent.initialize()
    ended = await agent.http.delete(agent.url, headers=agent.headers)
    assert ended.status_code == 200
    assert (await agent.post("tools/list")).status_code == 404
    assert (await agent.http.delete(agent.url, headers=agent.headers)).status_code == 404
    assert (await agent.http.delete(agent.url)).status_code == 400


async def test_get_and_head_are_told_what_is_served_and_make_no_session(agent: Agent, served: Served) -> None:
    for method in ("HEAD", "PUT", "OPTIONS"):
        response = await agent.http.request(method, agent.url)
        assert (response.status_code, response.headers["allow"]) == (405, "POST, GET, DELETE")
    for method in ("GET", "DELETE"):
        response = await agent.http.request(method, agent.url, headers={"mcp-protocol-version": MODERN})
        assert (response.status_code, response.headers["allow"]) == (405, "POST")
        assert (await agent.http.request(method, agent.url)).status_code == 400
    assert len(served.gateway.endpoints["counting"].sessions) == 0


async def test_notifications_and_responses_are_taken(agent: Agent) -> None:
    await agent.initialize()
    for message in ({"method": "notifications/initialized"}, {"method": "notifications/nonsense"}, {"id": 1, "result": {}}):
        response = await agent.http.post(agent.url, json={"jsonrpc": "2.0", **message}, headers=agent.headers)
        assert (response.status_code, response.content) == (202, b"")


async def test_an_answer_is_one_event_for_a_client_that_takes_only_events(agent: Agent) -> None:
    await agent.initialize()
    response = await agent.post("ping", accept="text/event-stream")
    assert response.headers["content-type"] == "text/event-stream"
    data = [line[6:] for line in response.text.splitlines() if line.startswith("data: ")]
    assert json.loads(data[0])["result"] == {}


async def test_a_second_request_with_an_id_in_flight_is_refused(agent: Agent, server: ScriptedServer) -> None:
    await agent.initialize()
    await agent.call("reset")
    server.hold_reply()
    body = {"jsonrpc": "2.0", "id": "same", "method": "tools/call", "params": {"name": "step", "arguments": {"add": 1}}}
    first = asyncio.ensure_future(agent.http.post(agent.url, json=body, headers=agent.headers))
    await server.until(lambda: len(server.requests) == 2)
    second = await agent.http.post(agent.url, json=body, headers=agent.headers)
    assert (second.status_code, second.json()["error"]["code"]) == (400, -32600)
    server.release_reply()
    assert (await first).json()["result"]["structuredContent"]["observation"]["count"] == 1
    assert len(server.requests) == 2


async def test_cancelling_a_step_makes_its_outcome_the_next_calls_news(agent: Agent, server: ScriptedServer) -> None:
    await agent.initialize()
    await agent.call("reset")
    server.hold_reply()
    body = {"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": {"name": "step", "arguments": {"add": 1}}}
    first = asyncio.ensure_future(agent.http.post(agent.url, json=body, headers=agent.headers))
    await server.until(lambda: len(server.requests) == 2)
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77}}
    assert (await agent.http.post(agent.url, json=cancel, headers=agent.headers)).status_code == 202
    assert (await first).json()["error"]["message"] == "The request was cancelled"
    server.release_reply()
    late = await agent.call("step", add=1)
    assert code_of(late) == "PREVIOUS_ACTION_LATE"
    assert (await agent.http.post(agent.url, json=cancel, headers=agent.headers)).status_code == 202
    assert (await agent.call("step", add=1))["structuredContent"]["observation"]["count"] == 2


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_an_answer_whose_client_has_left_is_told_by_the_next_call(
    served: Served, server: ScriptedServer, era: str
) -> None:
    """Handshake era: a dropped connection does not cancel, the call goes on. Either way nobody acts twice unknowingly."""
    async with Agent(served.url("counting") + "?session=me") as agent:
        await agent.initialize()
        await agent.call("reset")
        server.hold_reply()
        body = {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "step", "arguments": {"add": 1}}}
        headers = {**agent.headers}
        if era == "modern":
            body["params"]["_meta"] = META  # type: ignore[index]
            headers = {"mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": "step"}
        with pytest.raises(httpx.ReadTimeout):
            await agent.http.post(agent.url, json=body, headers=headers, timeout=0.3)
        if era == "modern":  # leaving is the cancel
            await until(lambda: served.gateway.busy == 0)
        server.release_reply()
        await until(lambda: served.gateway.busy == 0)
        late = await agent.call("step", add=1)
        assert code_of(late) == "PREVIOUS_ACTION_LATE"
        assert '"count":1' in late["content"][0]["text"]
        assert (await agent.call("step", add=1))["structuredContent"]["observation"]["count"] == 2


# --- 2026-07-28 ------------------------------------------------------------------------------------------------------


async def test_discover_needs_no_session(agent: Agent) -> None:
    result = (await agent.modern("server/discover")).json()["result"]
    mcp_types.DiscoverResult.model_validate(result)
    assert result["supportedVersions"] == [MODERN]
    assert (result["resultType"], result["cacheScope"]) == ("complete", "private")
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "openenv-gateway"


async def test_a_handle_carries_the_episode_from_call_to_call(agent: Agent) -> None:
    listed = (await agent.modern("tools/list")).json()["result"]["tools"]
    assert "session_id" in listed[1]["inputSchema"]["required"]
    assert "session_id" not in listed[0]["inputSchema"].get("required", [])
    reset = (await agent.modern("tools/call", {"name": "reset", "arguments": {}})).json()["result"]
    handle = reset["structuredContent"]["session_id"]
    assert handle in reset["content"][0]["text"]
    arguments = {"add": 4, "session_id": handle}
    step = (await agent.modern("tools/call", {"name": "step", "arguments": arguments})).json()["result"]
    assert step["structuredContent"]["observation"]["count"] == 4
    assert step["resultType"] == "complete"
    again = (await agent.modern("tools/call", {"name": "reset", "arguments": {"session_id": handle}})).json()["result"]
    assert again["structuredContent"]["session_id"] == handle
    other = (await agent.modern("tools/call", {"name": "reset", "arguments": {}})).json()["result"]
    assert other["structuredContent"]["session_id"] != handle


async def test_without_a_handle_or_with_an_unknown_one_the_agent_is_told_how_to_get_one(agent: Agent) -> None:
    for arguments, code in (({"add": 1}, "SESSION_REQUIRED"), ({"add": 1, "session_id": "guess"}, "UNKNOWN_SESSION")):
        response = await agent.modern("tools/call", {"name": "step", "arguments": arguments})
        result = response.json()["result"]
        assert (response.status_code, code_of(result)) == (200, code)
        assert "reset" in result["content"][0]["text"]


@pytest.mark.parametrize(
    ("method", "headers", "status", "code"),
    [
        ("tools/list", {"mcp_method": "tools/call"}, 400, -32020),
        ("tools/list", {"mcp_method": None}, 400, -32020),
        ("tools/list", {"mcp_protocol_version": None}, 400, -32020),
        ("tools/list", {"mcp_protocol_version": "2025-11-25"}, 400, -32020),
        ("ping", {}, 404, -32601),
        ("initialize", {}, 404, -32601),
        ("nonsense", {}, 404, -32601),
    ],
)
async def test_the_header_ladder(agent: Agent, method: str, headers: dict[str, str | None], status: int, code: int) -> None:
    response = await agent.modern(method, **headers)
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)


async def test_closing_the_stream_cancels_the_call_and_its_outcome_is_told(
    agent: Agent, served: Served, server: ScriptedServer
) -> None:
    reset = (await agent.modern("tools/call", {"name": "reset"})).json()["result"]
    arguments = {"add": 1, "session_id": reset["structuredContent"]["session_id"]}
    server.hold_reply()
    task = asyncio.ensure_future(agent.modern("tools/call", {"name": "step", "arguments": arguments}))
    await server.until(lambda: len(server.requests) == 2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: served.gateway.busy == 0)
    server.release_reply()
    result = (await agent.modern("tools/call", {"name": "step", "arguments": arguments})).json()["result"]
    assert code_of(result) == "PREVIOUS_ACTION_LATE"


# --- lanes -----------------------------------------------------------------------------------------------------------


async def test_a_named_session_needs_one_post_and_survives_reconnects(served: Served) -> None:
    async with Agent(served.url() + "?session=me") as agent:
        tools = (await agent.post("tools/list")).json()["result"]["tools"]
        assert all("session_id" not in tool["inputSchema"]["properties"] for tool in tools)
        first = await agent.call("step", add=2)
        assert "new episode" in first["structuredContent"]["notice"]
    async with Agent(served.url() + "?session=me") as agent:
        await agent.initialize()
        assert (await agent.call("step", add=2))["structuredContent"]["observation"]["count"] == 4
    async with Agent(served.url() + "?session=other") as agent:
        assert (await agent.call("step", add=1))["structuredContent"]["observation"]["count"] == 1


@pytest.mark.parametrize("query", ["?session=", "?session=a&session=b", "?session=" + "x" * 200])
async def test_a_bad_session_name_is_refused(served: Served, query: str) -> None:
    async with Agent(served.url() + query) as agent:
        response = await agent.post("tools/call", {"name": "reset"})
        assert response.status_code == 400
        assert "?session=NAME" in response.json()["error"]["message"]


async def test_an_episode_outlives_its_mcp_session_for_whoever_has_the_handle(served: Served, server: ScriptedServer) -> None:
    async with Agent(served.url()) as first:
        await first.initialize()
        handle = (await first.call("reset"))["structuredContent"]["session_id"]
        await first.call("step", add=3)
        await first.http.delete(first.url, headers=first.headers)
    async with Agent(served.url()) as second:
        await second.initialize()
        assert (await second.call("step", add=1, session_id=handle))["structuredContent"]["observation"]["count"] == 4
        assert (await second.call("step", add=1))["structuredContent"]["observation"]["count"] == 5
    assert server.sessions_opened == 1
    async with Agent(served.url()) as third:
        await third.initialize()
        fresh = (await third.call("step", add=1))["structuredContent"]
        assert fresh["observation"]["count"] == 1
        assert "new episode" in fresh["notice"] and fresh["session_id"] != handle


async def test_a_lingering_lane_ends_after_its_time(server: ScriptedServer) -> None:
    async with serving(environment_settings(server.url, timeouts_linger_s=0)) as served, Agent(served.url()) as agent:
        await agent.initialize()
        handle = (await agent.call("reset"))["structuredContent"]["session_id"]
        await agent.http.delete(agent.url, headers=agent.headers)
        await server.until(lambda: server.sessions_open == 0)
        await agent.initialize()
        assert code_of(await agent.call("step", add=1, session_id=handle)) == "UNKNOWN_SESSION"


async def test_exposure_agent_shows_observe_and_no_control(server: ScriptedServer) -> None:
    settings = environment_settings(server.url, mapping_exposure="agent")
    async with serving(settings) as served, Agent(served.url()) as agent:
        listed = (await agent.modern("tools/list")).json()["result"]["tools"]
        assert [tool["name"] for tool in listed] == ["step", "observe"]
        seen = (await agent.modern("tools/call", {"name": "observe"})).json()["result"]["structuredContent"]
        arguments = {"add": 1, "session_id": seen["session_id"]}
        step = (await agent.modern("tools/call", {"name": "step", "arguments": arguments})).json()["result"]
        assert step["structuredContent"]["observation"]["count"] == 1
        reset = await agent.modern("tools/call", {"name": "reset", "arguments": {}})
        assert reset.json()["error"]["code"] == -32602


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


# --- found in review -------------------------------------------------------------------------------------------------


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
