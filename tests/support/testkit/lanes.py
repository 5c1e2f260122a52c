"""A lane on a scripted server, and what tests of lanes say and read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from openenv_client.errors import ReplyTimeout
from openenv_client.frames import JsonObject, Observation, State
from openenv_gateway.mapping.actions import Request
from openenv_gateway.pool.pool import Pool
from openenv_gateway.sessions.lane import Lane
from testkit.gateways import environment_settings
from testkit.scripted import ScriptedServer

RESET, STATE, OBSERVE = Request("reset", {}), Request("state", {}), Request("observe", {})


def add(number: int) -> Request:
    return Request("step", {"add": number})


@asynccontextmanager
async def lane_on(server: ScriptedServer, **changes: Any) -> AsyncIterator[Lane]:
    settings = environment_settings(server.url, **changes)
    pool = Pool(settings)
    lane = Lane("handle", "anonymous", settings, pool)
    try:
        yield lane
    finally:
        await lane.close()
        await pool.close()


def counted(reply: Observation | State | Any) -> Any:
    assert isinstance(reply, Observation)
    return reply.observation["count"]


def frames(server: ScriptedServer) -> list[JsonObject]:
    return [received.frame for received in server.requests]


async def started(server: ScriptedServer, call: Awaitable[Any], requests: int) -> asyncio.Task[Any]:
    """`call` as a task, returned once the server has got `requests` requests."""
    task = asyncio.ensure_future(call)
    await server.until(lambda: len(server.requests) >= requests)
    return task


async def cancelled(task: asyncio.Task[Any]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def late_step(server: ScriptedServer, lane: Lane) -> None:
    """An episode whose step +3 timed out; its reply is on its way."""
    await lane.call(RESET, "reset")
    server.hold_reply()
    with pytest.raises(ReplyTimeout):
        await lane.call(add(3), "step", timeout_s=0.05)
    server.release_reply()
