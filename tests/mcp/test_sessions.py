"""MCP sessions of the handshake era."""

from __future__ import annotations

import asyncio
import time

import pytest
from testkit.gateways import environment_settings

from openenv_gateway.errors import LaneBusy
from openenv_gateway.mcp.jsonrpc import RpcError
from openenv_gateway.mcp.revisions import LATEST_HANDSHAKE
from openenv_gateway.mcp.sessions import SessionTable
from openenv_gateway.sessions.registry import LaneRegistry


def table(limit: int = 10) -> tuple[SessionTable, LaneRegistry]:
    lanes = LaneRegistry(environment_settings("http://127.0.0.1:9"))
    return SessionTable(lanes, idle_s=100, limit=limit), lanes


async def test_a_session_is_found_by_its_principal_alone() -> None:
    sessions, _ = table()
    session = sessions.new("alice", LATEST_HANDSHAKE)
    assert sessions.find(session.id, "alice") is session
    assert sessions.find(session.id, "bob") is None
    assert sessions.find("guess", "alice") is None
    sessions.end(session)
    assert sessions.find(session.id, "alice") is None


async def test_idle_sessions_end_and_their_lanes_linger() -> None:
    sessions, lanes = table()
    idle, busy, young = (sessions.new("a", LATEST_HANDSHAKE) for _ in range(3))
    lane = lanes.new("a")
    idle.adopt(lane)
    idle.last_used = busy.last_used = time.monotonic() - 101
    busy.in_flight[1] = asyncio.ensure_future(asyncio.sleep(0))
    sessions.sweep()
    assert [sessions.find(session.id, "a") for session in (idle, busy, young)] == [None, busy, young]
    assert lane.lingers_since is not None
    await asyncio.gather(*busy.in_flight.values())


async def test_a_full_table_lets_the_longest_unused_go() -> None:
    sessions, _ = table(limit=2)
    first, second = sessions.new("a", LATEST_HANDSHAKE), sessions.new("a", LATEST_HANDSHAKE)
    sessions.find(first.id, "a")
    third = sessions.new("a", LATEST_HANDSHAKE)
    assert [sessions.find(session.id, "a") for session in (first, second, third)] == [first, None, third]


async def test_a_table_full_of_running_calls_refuses_a_new_session() -> None:
    sessions, _ = table(limit=1)
    session = sessions.new("a", LATEST_HANDSHAKE)
    task = asyncio.ensure_future(asyncio.sleep(0))
    session.begin(1, task)
    with pytest.raises(LaneBusy):
        sessions.new("a", LATEST_HANDSHAKE)
    await task


async def test_equal_ids_in_flight_are_refused_and_an_ended_one_may_be_used_again() -> None:
    sessions, _ = table()
    session = sessions.new("a", LATEST_HANDSHAKE)
    task = asyncio.ensure_future(asyncio.sleep(0))
    session.begin(1, task)
    with pytest.raises(RpcError):
        session.begin(1, task)
    session.begin("1", task)
    session.end(1)
    session.begin(1, task)
    await task


async def test_cancelling_what_is_over_or_was_never_there_is_ignored() -> None:
    sessions, _ = table()
    session = sessions.new("a", LATEST_HANDSHAKE)
    nothing: list[object] = [1, "x", None, {}, [1]]
    for identity in nothing:
        assert session.cancel(identity) is False
    task = asyncio.ensure_future(asyncio.sleep(60))
    session.begin(7, task)
    assert session.cancel(7) is True
    with pytest.raises(asyncio.CancelledError):
        await task
