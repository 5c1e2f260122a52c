"""A client of 2025-11-25 that lost the stream of a call, or was told to poll, comes back for the answer and gets it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from testkit.gateways import Served, environment_settings, serving
from testkit.http_agent import Agent
from testkit.scripted import ScriptedServer

from mcp import Client
from openenv_gateway.mcp.inflight import InFlight
from openenv_gateway.mcp.mailbox import MOST, Mailbox
from openenv_gateway.transports.exchange import PRIME_AFTER_S

STEP = {
    "jsonrpc": "2.0",
    "id": 77,
    "method": "tools/call",
    "params": {"name": "step", "arguments": {"add": 5}, "_meta": {"progressToken": "t"}},
}
"""Whoever asks for progress gets a stream at once; others when the call has lasted for PRIME_AFTER_S."""
EVENTS = {"accept": "application/json, text/event-stream"}


@asynccontextmanager
async def lasting_step(agent: Agent, server: ScriptedServer) -> AsyncIterator[tuple[str, httpx.Response]]:
    """The event id of a step that the environment does not answer yet, and its open response."""
    server.hold_reply()
    async with agent.http.stream("POST", agent.url, json=STEP, headers={**agent.headers, **EVENTS}) as response:
        async with asyncio.timeout(5):
            lines = response.aiter_lines()
            assert response.headers["content-type"] == "text/event-stream"
            first = [await anext(lines) for _ in range(3)]
        assert first[1:] == ["retry: 1000", "data: "]
        yield first[0].removeprefix("id: "), response


async def come_back(agent: Agent, event_id: str) -> list[dict[str, Any]]:
    """The messages of a GET with the id of the last event."""
    headers = {**agent.headers, "accept": "text/event-stream", "last-event-id": event_id}
    async with asyncio.timeout(5), agent.http.stream("GET", agent.url, headers=headers) as response:
        assert response.status_code == 200
        return [json.loads(line[6:]) async for line in response.aiter_lines() if line.startswith("data: {")]


async def started(agent: Agent) -> None:
    await agent.initialize()
    await agent.call("reset")


def count_of(message: dict[str, Any]) -> int:
    assert message["id"] == 77
    count: int = message["result"]["structuredContent"]["observation"]["count"]
    return count


async def lane_is_idle(served: Served) -> None:
    async with asyncio.timeout(5):
        while served.gateway.busy:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_a_client_that_lost_its_stream_gets_the_answer_when_it_comes_back_while_the_call_goes_on(
    agent: Agent, server: ScriptedServer
) -> None:
    await started(agent)
    async with lasting_step(agent, server) as (event_id, _):
        pass
    coming = asyncio.ensure_future(come_back(agent, event_id))
    await asyncio.sleep(0.1)  # so that it waits; were it too late, it would be the next test
    server.release_reply()
    (answer,) = await coming
    assert count_of(answer) == 5
    assert (await agent.call("step", add=1))["structuredContent"]["observation"]["count"] == 6, "and nobody is told it again"


async def test_a_client_that_comes_back_after_the_end_of_its_call_gets_the_answer_once(
    agent: Agent, served: Served, server: ScriptedServer
) -> None:
    await started(agent)
    async with lasting_step(agent, server) as (event_id, _):
        pass
    server.release_reply()
    await lane_is_idle(served)
    (answer,) = await come_back(agent, event_id)
    assert count_of(answer) == 5
    assert (await agent.call("step", add=1))["structuredContent"]["observation"]["count"] == 6


async def test_a_client_that_does_not_come_back_is_told_by_its_next_call(
    agent: Agent, served: Served, server: ScriptedServer
) -> None:
    await started(agent)
    async with lasting_step(agent, server):
        pass
    server.release_reply()
    await lane_is_idle(served)
    late = await agent.call("step", add=1)
    assert late["isError"] and late["content"][0]["text"].startswith("PREVIOUS_ACTION_LATE")
    assert (await agent.call("step", add=1))["structuredContent"]["observation"]["count"] == 6


async def test_who_stays_gets_the_answer_on_the_same_stream(agent: Agent, server: ScriptedServer) -> None:
    await started(agent)
    server.hold_reply()
    asyncio.get_running_loop().call_later(0.6, server.release_reply)
    response = await agent.http.post(agent.url, json=STEP, headers={**agent.headers, **EVENTS}, timeout=5)
    assert response.text.startswith("id: ") and '"count":5' in response.text
    assert (await agent.call("step", add=1))["structuredContent"]["observation"]["count"] == 6


async def test_a_stream_that_lasts_too_long_is_closed_and_its_connection_is_free_for_other_requests(
    server: ScriptedServer,
) -> None:
    async with serving(environment_settings(server.url, poll_after_s=0.5)) as served, Agent(served.url()) as agent:
        await started(agent)
        server.hold_reply()
        response = await agent.http.post(agent.url, json=STEP, headers={**agent.headers, **EVENTS}, timeout=5)
        lines = response.text.splitlines()
        assert lines[0].startswith("id: ") and '"result"' not in response.text, "it ended without an answer"
        assert (await agent.post("ping")).json()["result"] == {}
        server.release_reply()
        (answer,) = await come_back(agent, lines[0].removeprefix("id: "))
        assert count_of(answer) == 5
        assert (await agent.call("step", add=1))["structuredContent"]["observation"]["count"] == 6


async def test_an_official_client_polls_without_its_user_noticing(server: ScriptedServer) -> None:
    async with serving(environment_settings(server.url, poll_after_s=0.5)) as served, asyncio.timeout(20):
        async with Client(served.url(), mode="legacy") as client:
            await client.call_tool("reset", {})
            server.hold_reply()
            asyncio.get_running_loop().call_later(PRIME_AFTER_S + 1, server.release_reply)
            step = await client.call_tool("step", {"add": 5})
            assert step.structured_content is not None and step.structured_content["observation"]["count"] == 5
            step = await client.call_tool("step", {"add": 1})
            assert step.structured_content is not None and step.structured_content["observation"]["count"] == 6


@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18"])
async def test_clients_of_earlier_revisions_get_no_event_without_data(
    agent: Agent, server: ScriptedServer, version: str
) -> None:
    await agent.initialize(version)
    await agent.call("reset")
    server.hold_reply()
    asyncio.get_running_loop().call_later(0.6, server.release_reply)
    response = await agent.http.post(agent.url, json=STEP, headers={**agent.headers, **EVENTS}, timeout=5)
    assert '"result"' in response.text
    assert all(line.startswith(("event: ", "data: {")) for line in response.text.splitlines() if line)


async def test_an_id_of_another_session_or_none_at_all_opens_the_ordinary_stream(
    agent: Agent, served: Served, server: ScriptedServer
) -> None:
    await started(agent)
    async with lasting_step(agent, server) as (event_id, _):
        async with Agent(served.url()) as other:
            await other.initialize()
            for last in (event_id, "nonsense"):
                headers = {**other.headers, "accept": "text/event-stream", "last-event-id": last}
                async with asyncio.timeout(5), other.http.stream("GET", other.url, headers=headers) as response:
                    assert await anext(response.aiter_lines()) == ": connected"
        server.release_reply()


async def test_of_many_answers_the_newest_are_kept() -> None:
    mailbox = Mailbox()
    posted = [mailbox.open(InFlight()) for _ in range(MOST + 3)]
    assert len(mailbox) == MOST
    assert [mailbox.find(one.event_id) for one in posted[:3]] == [None] * 3
    assert mailbox.find(posted[-1].event_id) is posted[-1]
    assert mailbox.find(None) is None
