"""MCP Streamable HTTP, both eras and their lanes, spoken byte by byte to a real HTTP server before a scripted environment."""

from __future__ import annotations

import asyncio
import json

import httpx
import mcp_types
import pytest
from testkit.gateways import Served, environment_settings, serving
from testkit.http_agent import META, MODERN, Agent, code_of, until
from testkit.scripted import ScriptedServer

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
    ways = ("initialize", "?session=NAME", "openenv/session/create", "session_id that reset returns")
    assert all(way in missing.json()["error"]["message"] for way in ways)
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
