"""connection.py: one WebSocket, one session; against a scripted server on a real socket."""

from __future__ import annotations

import asyncio
import json
import sys
from subprocess import run

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from testkit.connections import LONG, connected
from testkit.scripted import ScriptedServer, ScriptedSession, Turn, error, observation

from openenv_client.errors import (
    BadReply,
    CapacityReached,
    EpisodeLost,
    FactoryFailed,
    ReplyOwed,
    ReplyTimeout,
    SessionRefused,
)
from openenv_client.frames import ErrorFrame, JsonObject, Kind, Observation, parse_reply
from openenv_client.session import EnvironmentSession


def echo(raw: bytes) -> JsonObject:
    """What the counting environment was asked, from its reply."""
    reply = parse_reply(raw)
    assert isinstance(reply, Observation)
    return dict(reply.observation["echo"])


async def give_up(call: asyncio.Task[bytes]) -> None:
    call.cancel()
    await asyncio.wait({call}, timeout=LONG)
    assert call.cancelled()


# Replies


async def test_reset_step_and_state_are_answered_in_turn_with_the_raw_frames() -> None:
    async with ScriptedServer() as server, connected(server) as session:
        conforming: EnvironmentSession = session
        assert json.loads(await conforming.exchange("reset", None, LONG)) == observation(count=0, echo={})
        assert json.loads(await session.exchange("step", {"add": 3}, LONG)) == observation(3.0, count=3, echo={"add": 3})
        assert json.loads(await session.exchange("state", None, LONG)) == {"type": "state", "data": {"count": 3}}
        assert (session.owes, session.is_open) == (None, True)


@pytest.mark.parametrize("env", ["atari_env", "connect4_env", "echo_env", "old_server_0.2.0"])
async def test_a_recorded_conversation_is_held_again(env: str) -> None:
    async with ScriptedServer.recorded(env) as server, connected(server) as session:
        turns = list(server.script)
        assert len(turns) >= 8
        for turn in turns:
            assert turn.expect is not None and isinstance(turn.reply, dict)
            kind: Kind = turn.expect["type"]
            assert json.loads(await session.exchange(kind, turn.expect.get("data"), LONG)) == turn.reply
        assert server.script == []


async def test_an_error_frame_is_a_reply_and_the_session_goes_on() -> None:
    async with ScriptedServer() as server, connected(server) as session:
        refused = parse_reply(await session.exchange("step", {"wrong": 1}, LONG))
        assert isinstance(refused, ErrorFrame) and refused.code == "VALIDATION_ERROR"
        assert echo(await session.exchange("step", {"add": 1}, LONG)) == {"add": 1}


async def test_large_frames_pass_both_ways_whole() -> None:
    text = "x" * 500_000
    async with ScriptedServer() as server, connected(server) as session:
        assert echo(await session.exchange("step", {"add": 1, "text": text}, LONG)) == {"add": 1, "text": text}


async def test_a_reply_above_the_limit_ends_the_session_and_says_so() -> None:
    async with ScriptedServer() as server, connected(server, max_message_bytes=1000) as session:
        with pytest.raises(EpisodeLost, match="a reply was larger than 1000 bytes"):
            await session.exchange("step", {"add": 1, "text": "x" * 2000}, LONG)


async def test_data_that_is_no_json_is_refused_before_anything_is_sent() -> None:
    async with ScriptedServer() as server, connected(server) as session:
        with pytest.raises(TypeError):
            await session.exchange("step", {"add": object()}, LONG)
        assert session.owes is None
        await session.exchange("reset", None, LONG)
        assert len(server.requests) == 1


# Owing


async def test_a_late_reply_never_answers_the_next_call() -> None:
    async with ScriptedServer() as server, connected(server) as session:
        server.hold_reply()
        with pytest.raises(ReplyTimeout, match=r"No reply to step within 0\.05 s"):
            await session.exchange("step", {"add": 1}, 0.05)
        assert session.owes == "step"
        with pytest.raises(ReplyOwed):
            await session.exchange("step", {"add": 2}, LONG)
        with pytest.raises(ReplyTimeout):
            await session.collect(0.01)
        server.release_reply()
        assert echo(await session.collect(LONG)) == {"add": 1}
        assert echo(await session.exchange("step", {"add": 4}, LONG)) == {"add": 4}
        assert [received.frame["data"] for received in server.requests] == [{"add": 1}, {"add": 4}]


async def test_a_cancelled_call_leaves_its_reply_owed() -> None:
    async with ScriptedServer() as server, connected(server) as session:
        server.hold_reply()
        call = asyncio.create_task(session.exchange("step", {"add": 1}, LONG))
        await server.until(lambda: len(server.requests) == 1)
        await give_up(call)
        assert session.owes == "step"
        server.release_reply()
        assert echo(await session.collect(LONG)) == {"add": 1}


async def test_nobody_collects_a_reply_for_which_its_own_call_waits() -> None:
    async with ScriptedServer() as server, connected(server) as session:
        server.hold_reply()
        call = asyncio.create_task(session.exchange("step", {"add": 1}, LONG))
        await server.until(lambda: len(server.requests) == 1)
        with pytest.raises(RuntimeError, match="Two calls wait for one reply"):
            await session.collect(LONG)
        with pytest.raises(ReplyOwed):
            await session.exchange("state", None, LONG)
        server.release_reply()
        assert echo(await call) == {"add": 1}


CALLS = st.lists(st.tuples(st.sampled_from(["step", "hold", "release"]), st.none() | st.integers(0, 12)), max_size=12)


@settings(max_examples=60, deadline=None)
@given(CALLS)
def test_whenever_calls_are_given_up_every_reply_goes_to_its_own_request(calls: list[tuple[str, int | None]]) -> None:
    asyncio.run(_play(calls))


async def _play(calls: list[tuple[str, int | None]]) -> None:
    """Steps numbered 1, 2, ...; each given up after some turns of the event loop, or never, or by timeout when held."""
    async with ScriptedServer() as server, connected(server) as session:
        held, owed, number = False, None, 0
        for operation, turns in calls:
            if operation != "step":
                held = operation == "hold"
                server.hold_reply() if held else server.release_reply()
                continue
            if owed is None:
                number += 1
                call = asyncio.create_task(session.exchange("step", {"add": number}, 0.01 if held else LONG))
            else:
                call = asyncio.create_task(session.collect(0.01 if held else LONG))
            expected = number
            for _ in range(turns or 0):
                await asyncio.sleep(0)
            if turns is not None:
                call.cancel()
            await asyncio.wait({call}, timeout=LONG)
            if call.cancelled() or isinstance(call.exception(), ReplyTimeout):
                was_sent = session.owes is not None
                number -= not was_sent
                owed = number if was_sent else None
            else:
                assert echo(call.result()) == {"add": expected}
                owed = None
        server.release_reply()
        if session.owes:
            assert echo(await session.collect(LONG)) == {"add": number}
        assert [received.frame["data"]["add"] for received in server.requests] == list(range(1, number + 1))


# Refusals


async def test_a_full_servers_refusal_is_read_100_times_of_100() -> None:
    async with ScriptedServer(capacity=0) as server:
        for _ in range(100):
            async with connected(server) as session:
                with pytest.raises(CapacityReached) as caught:
                    await session.exchange("reset", {"seed": 1}, LONG)
                assert (caught.value.active_sessions, caught.value.max_sessions) == (0, 0)


async def test_refusals_are_read_by_40_clients_at_once() -> None:
    async def knock(server: ScriptedServer) -> str:
        async with connected(server) as session:
            with pytest.raises(FactoryFailed) as caught:
                await session.exchange("reset", None, LONG)
            return caught.value.message

    async with ScriptedServer(factory_error="no ROM") as server:
        assert await asyncio.gather(*(knock(server) for _ in range(40))) == ["no ROM"] * 40


async def test_a_refusal_that_came_long_before_the_first_call_is_read_all_the_same() -> None:
    async with ScriptedServer(capacity=0) as server, connected(server) as session:
        await asyncio.wait_for(session.wait_closed(), LONG)
        assert not session.is_open
        for _ in range(2):
            with pytest.raises(CapacityReached):
                await session.exchange("reset", None, LONG)


async def test_a_refusal_that_comes_after_the_first_request_is_none_of_its_replies() -> None:
    async def refuse_late(session: ScriptedSession) -> None:
        await session.receive()
        await session.send(error("SESSION_ERROR", "Unknown session_id: x"))

    async with ScriptedServer(handler=refuse_late) as server, connected(server) as session:
        with pytest.raises(SessionRefused, match="Unknown session_id: x") as caught:
            await session.exchange("reset", None, LONG)
        assert caught.value.code == "SESSION_ERROR"
        assert session.owes is None


async def test_a_first_request_may_fail_without_being_refused() -> None:
    fault = error("EXECUTION_ERROR", "no slot, not even CAPACITY_REACHED")
    async with ScriptedServer([Turn(fault), Turn(observation())]) as server, connected(server) as session:
        assert json.loads(await session.exchange("reset", None, LONG)) == fault
        await session.exchange("reset", None, LONG)


async def test_a_first_reply_that_only_looks_like_a_refusal_is_passed_on() -> None:
    async with ScriptedServer([Turn("CAPACITY_REACHED")]) as server, connected(server) as session:
        assert await session.exchange("reset", None, LONG) == b"CAPACITY_REACHED"


@pytest.mark.parametrize("first", ["welcome!", observation(n=1)], ids=["garbage", "observation"])
async def test_a_server_that_speaks_first_without_refusing_is_no_openenv_server(first: JsonObject | str) -> None:
    async def greet(session: ScriptedSession) -> None:
        await session.send(first)
        await session.receive()

    async with ScriptedServer(handler=greet) as server, connected(server) as session:
        await asyncio.wait_for(session.wait_closed(), LONG)
        with pytest.raises(BadReply):
            await session.exchange("reset", None, LONG)


# Pings


def pinging() -> int:
    """How many connections in this event loop send pings: websockets gives each of them a task (the server sends none)."""
    return sum("keepalive" in repr(task.get_coro()) for task in asyncio.all_tasks())


async def test_no_pings_are_sent_unless_asked_for() -> None:
    async with ScriptedServer() as server, connected(server):
        assert pinging() == 0
        async with connected(server, ping_interval_s=0.01, ping_timeout_s=LONG):
            assert pinging() == 1
            await server.until(lambda: server.pings >= 3)


async def test_the_connection_needs_no_http_client() -> None:
    code = "import sys, openenv_client.connection; print('httpx' in sys.modules)"
    done = await asyncio.to_thread(run, [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "False"
