"""Server-sent events: progress, log messages, GET streams, subscriptions, batches. Over a real HTTP server."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest
from testkit.gateways import environment_settings, serving
from testkit.http_agent import MODERN, Agent
from testkit.scripted import ScriptedServer


def events(text: str) -> list[dict[str, Any]]:
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]


async def slow(server: ScriptedServer, call: Any, seconds: float) -> httpx.Response:
    """The response to a step that the environment answers after `seconds`."""
    server.hold_reply()
    task = asyncio.ensure_future(call)
    await asyncio.sleep(seconds)  # what is told in the meantime depends on time alone
    server.release_reply()
    response: httpx.Response = await task
    return response


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_a_step_that_lasts_is_alive_for_whoever_asked_for_progress(
    agent: Agent, server: ScriptedServer, era: str
) -> None:
    step: dict[str, Any] = {"name": "step", "arguments": {"add": 1}, "_meta": {"progressToken": "t"}}
    if era == "handshake":
        await agent.initialize()
        await agent.call("reset")
        response = await slow(server, agent.post("tools/call", step), 1.1)
    else:
        reset = (await agent.modern("tools/call", {"name": "reset"})).json()["result"]
        step["arguments"]["session_id"] = reset["structuredContent"]["session_id"]
        response = await slow(server, agent.modern("tools/call", step), 1.1)
    assert response.headers["content-type"] == "text/event-stream"
    assert response.headers["x-accel-buffering"] == "no"
    *notifications, answer = events(response.text)
    numbers = [message["params"]["progress"] for message in notifications]
    assert len(numbers) >= 3 and numbers == sorted(set(numbers))
    assert {message["method"] for message in notifications} == {"notifications/progress"}
    assert {message["params"]["progressToken"] for message in notifications} == {"t"}
    assert notifications[0]["params"]["message"] == "waiting for the environment's answer to step"
    assert answer["result"]["structuredContent"]["observation"]["count"] == 1


async def test_a_fast_step_and_a_client_that_takes_no_events_get_plain_json(agent: Agent, server: ScriptedServer) -> None:
    await agent.initialize()
    await agent.call("reset")
    step = {"name": "step", "arguments": {"add": 1}, "_meta": {"progressToken": 1}}
    fast = await agent.post("tools/call", step)
    assert fast.headers["content-type"] == "application/json"
    response = await slow(server, agent.post("tools/call", step, accept="application/json"), 0.6)
    assert response.json()["result"]["structuredContent"]["observation"]["count"] == 2


async def test_log_messages_come_to_whoever_asked_for_them(agent: Agent) -> None:
    await agent.initialize()
    await agent.post("logging/setLevel", {"level": "info"})
    response = await agent.post("tools/call", {"name": "step", "arguments": {"add": 1}})
    *notifications, answer = events(response.text)
    assert [message["params"]["level"] for message in notifications] == ["info", "info"]
    assert "answered" in notifications[-1]["params"]["data"]
    assert answer["result"]["isError"] is False
    await agent.post("logging/setLevel", {"level": "error"})
    quiet = await agent.post("tools/call", {"name": "step", "arguments": {"add": 1}})
    assert quiet.headers["content-type"] == "application/json"


class Stream:
    """An open event stream, read event by event."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self._lines = response.aiter_lines()

    async def next(self) -> Any:
        async with asyncio.timeout(5):
            async for line in self._lines:
                if line.startswith("data: "):
                    return json.loads(line[6:])
        return None

    async def comment(self) -> str:
        async with asyncio.timeout(5):
            async for line in self._lines:
                if line.startswith(":"):
                    return line
        raise AssertionError("the stream has ended")


def change_schema(server: ScriptedServer) -> None:
    action = {"type": "object", "properties": {"add": {"type": "integer", "maximum": 5}}}
    server.pages["/schema"] = {"action": action, "observation": {"type": "object"}, "state": {"type": "object"}}


async def restart(server: ScriptedServer, agent: Agent) -> None:
    """As if the server had been restarted with another schema while an agent was playing."""
    change_schema(server)
    server.cut()
    await server.until(lambda: server.sessions_open == 0)
    assert (await agent.call("step", add=1))["isError"]
    await agent.call("reset")


async def test_a_get_stream_tells_that_the_tools_have_changed(agent: Agent, server: ScriptedServer) -> None:
    await agent.initialize()
    await agent.call("reset")
    headers = {**agent.headers, "accept": "text/event-stream"}
    async with agent.http.stream("GET", agent.url, headers=headers) as response:
        stream = Stream(response)
        assert await stream.comment() == ": connected"
        await restart(server, agent)
        assert await stream.next() == {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    tools = (await agent.post("tools/list")).json()["result"]["tools"]
    assert tools[1]["inputSchema"]["properties"]["add"]["maximum"] == 5


async def test_the_newest_get_stream_of_a_session_wins_and_delete_ends_it(agent: Agent) -> None:
    await agent.initialize()
    headers = {**agent.headers, "accept": "text/event-stream"}
    async with agent.http.stream("GET", agent.url, headers=headers) as first:
        older = Stream(first)
        await older.comment()
        async with agent.http.stream("GET", agent.url, headers=headers) as second:
            newer = Stream(second)
            await newer.comment()
            assert await older.next() is None
            await agent.http.delete(agent.url, headers=agent.headers)
            assert await newer.next() is None


async def test_a_subscription_is_acknowledged_and_gets_what_it_asked_for(agent: Agent, server: ScriptedServer) -> None:
    reset = (await agent.modern("tools/call", {"name": "reset"})).json()["result"]
    handle = reset["structuredContent"]["session_id"]
    meta = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": MODERN}
    headers["mcp-method"] = "subscriptions/listen"
    body = {"jsonrpc": "2.0", "id": 9, "method": "subscriptions/listen"}
    params = {"notifications": {"toolsListChanged": True, "promptsListChanged": True}, "_meta": meta}
    async with agent.http.stream("POST", agent.url, json={**body, "params": params}, headers=headers) as response:
        stream = Stream(response)
        acknowledged = await stream.next()
        assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
        assert acknowledged["params"]["notifications"] == {"toolsListChanged": True}
        change_schema(server)
        server.cut()
        await server.until(lambda: server.sessions_open == 0)
        await agent.modern("tools/call", {"name": "reset", "arguments": {"session_id": handle}})
        changed = await stream.next()
        assert changed["method"] == "notifications/tools/list_changed"
        assert changed["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": 9}


async def test_a_malformed_subscription_is_an_error_and_no_stream(agent: Agent) -> None:
    response = await agent.modern("subscriptions/listen", {"notifications": 5})
    assert (response.status_code, response.json()["error"]["code"]) == (400, -32602)
    response = await agent.modern("subscriptions/listen", {"notifications": {}}, accept="application/json")
    assert response.status_code == 406


async def test_open_streams_do_not_keep_the_gateway_from_stopping(server: ScriptedServer) -> None:
    async with Agent("") as agent:
        async with asyncio.timeout(10):
            async with serving(environment_settings(server.url)) as served:
                agent.url = served.url()
                await agent.initialize()
                request = agent.http.build_request("GET", agent.url, headers={**agent.headers, "accept": "text/event-stream"})
                response = await agent.http.send(request, stream=True)
                await Stream(response).comment()
                served.gateway.end_streams()
            await response.aclose()


CANCEL = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}

# --- batches ---------------------------------------------------------------------------------------------------------


async def test_a_batch_of_2025_03_26_is_carried_out_in_order(agent: Agent) -> None:
    await agent.initialize("2025-03-26")
    batch: list[Any] = [
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "step", "arguments": {"add": 1}}},
        {"jsonrpc": "2.0", "method": "notifications/whatever"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "step", "arguments": {"add": 1}}},
        {"jsonrpc": "2.0", "id": 3, "method": "nonsense"},
        {"id": 4},
        {"jsonrpc": "2.0", "id": 5, "method": "initialize"},
    ]
    answers = (await agent.http.post(agent.url, json=batch, headers=agent.headers)).json()
    assert [answer["id"] for answer in answers] == [1, 2, 3, 4, 5]
    assert [json.loads(answer["result"]["content"][0]["text"])["observation"]["count"] for answer in answers[:2]] == [1, 2]
    assert [answer["error"]["code"] for answer in answers[2:]] == [-32601, -32600, -32600]
    only = await agent.http.post(agent.url, json=[batch[1]], headers=agent.headers)
    assert (only.status_code, only.content) == (202, b"")


async def test_batches_of_other_revisions_and_sizes_are_refused(agent: Agent) -> None:
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    assert (await agent.http.post(agent.url, json=[ping])).status_code == 400
    await agent.initialize("2025-06-18")
    assert (await agent.http.post(agent.url, json=[ping], headers=agent.headers)).status_code == 400
    await agent.initialize("2025-03-26")
    for batch in ([], [ping] * 101):
        assert (await agent.http.post(agent.url, json=batch, headers=agent.headers)).status_code == 400


async def test_a_cancelled_request_of_a_batch_is_answered_so_and_the_rest_goes_on(agent: Agent, server: ScriptedServer) -> None:
    await agent.initialize("2025-03-26")
    await agent.call("reset")
    server.hold_reply()
    step = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "step", "arguments": {"add": 1}}}
    batch = [step, {"jsonrpc": "2.0", "id": 8, "method": "ping"}]
    answering = asyncio.ensure_future(agent.http.post(agent.url, json=batch, headers=agent.headers))
    await server.until(lambda: len(server.requests) == 2)
    assert (await agent.http.post(agent.url, json=CANCEL, headers=agent.headers)).status_code == 202
    cancelled, pong = (await asyncio.wait_for(answering, 5)).json()
    assert (cancelled["id"], cancelled["error"]["code"]) == (7, -32800)
    assert (pong["id"], pong["result"]) == (8, {})
    server.release_reply()
