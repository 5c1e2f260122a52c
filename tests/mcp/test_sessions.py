"""MCP sessions of the handshake era."""

from __future__ import annotations

import asyncio
import time

import pytest
from testkit.gateways import environment_settings

from openenv_gateway.errors import LaneBusy
from openenv_gateway.mcp.inflight import InFlight
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
    busy.begin(1, InFlight())
    sessions.sweep()
    assert [sessions.find(session.id, "a") for session in (idle, busy, young)] == [None, busy, young]
    assert lane.lingers_since is not None


async def test_a_full_table_lets_the_longest_unused_go() -> None:
    sessions, _ = table(limit=2)
    first, second = sessions.new("a", LATEST_HANDSHAKE), sessions.new("a", LATEST_HANDSHAKE)
    sessions.find(first.id, "a")
    third = sessions.new("a", LATEST_HANDSHAKE)
    assert [sessions.find(session.id, "a") for session in (first, second, third)] == [first, None, third]


async def test_a_table_full_of_running_calls_refuses_a_new_session() -> None:
    sessions, _ = table(limit=1)
    session = sessions.new("a", LATEST_HANDSHAKE)
    session.begin(1, InFlight())
    with pytest.raises(LaneBusy):
        sessions.new("a", LATEST_HANDSHAKE)


async def test_equal_ids_in_flight_are_refused_and_an_ended_one_may_be_used_again() -> None:
    sessions, _ = table()
    session = sessions.new("a", LATEST_HANDSHAKE)
    session.begin(1, InFlight())
    with pytest.raises(RpcError):
        session.begin(1, InFlight())
    session.begin("1", InFlight())
    session.end(1)
    session.begin(1, InFlight())


async def test_cancelling_what_is_over_or_was_never_there_is_ignored() -> None:
    sessions, _ = table()
    session = sessions.new("a", LATEST_HANDSHAKE)
    nothing: list[object] = [1, "x", None, {}, [1]]
    for identity in nothing:
        assert session.cancel(identity) is False
    started = asyncio.Event()

    async def carry_out() -> str:
        request = InFlight()
        session.begin(1, request)
        started.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            assert request.absorb()
            await asyncio.sleep(0)  # the task goes on as if it had not been cancelled
            return "absorbed"
        return "slept"

    task = asyncio.create_task(carry_out())
    await started.wait()
    assert session.cancel(True) is False  # True == 1, but is no id
    assert session.cancel(1) is True
    assert await task == "absorbed"


async def test_a_cancellation_from_elsewhere_is_not_absorbed() -> None:
    assert InFlight().absorb() is False


async def test_a_session_that_is_a_connection_never_ends_by_itself() -> None:
    sessions, _ = table(limit=1)
    session = sessions.new("process", LATEST_HANDSHAKE)
    session.is_connection = True
    session.last_used = time.monotonic() - 10_000
    sessions.sweep()
    assert sessions.find(session.id, "process") is session
    with pytest.raises(LaneBusy):
        sessions.new("a", LATEST_HANDSHAKE)
