"""The client's contract: errors, timeouts, late replies, lost episodes, and refusals."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from testkit.clients import Add, Count, CountingClient
from testkit.script import Turn
from testkit.scripted import ScriptedServer

from openenv_client import StepResult
from openenv_client.errors import (
    BadReply,
    CapacityReached,
    EnvironmentFault,
    EpisodeLost,
    FactoryFailed,
    LateReply,
    ReplyTimeout,
)

SHORT = 0.05


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer() as running:
        yield running


# Errors


async def test_an_error_frame_is_a_runtime_error_with_message_code_and_field_errors(server: ScriptedServer) -> None:
    async with CountingClient(server.url) as client:
        await client.reset()
        with pytest.raises(RuntimeError) as failure:
            await client.step(Add("much"))  # type: ignore[arg-type]
        assert str(failure.value) == "Server error: Invalid message (code: VALIDATION_ERROR)"
        assert isinstance(failure.value, EnvironmentFault)
        assert failure.value.errors == ({"loc": ["add"], "msg": "Field required"},)
        assert (await client.step(Add(1))).observation == Count(1)


async def test_an_error_frame_without_a_code_says_so() -> None:
    async with ScriptedServer([Turn({"type": "error", "data": {"message": "no"}})]) as server:
        async with CountingClient(server.url) as client:
            with pytest.raises(RuntimeError, match=r"^Server error: no \(code: UNKNOWN\)$"):
                await client.reset()


@pytest.mark.parametrize("call", ["reset", "step", "state"])
async def test_a_full_server_is_always_the_same_error_with_its_numbers(call: str) -> None:
    async with ScriptedServer(capacity=1) as server, CountingClient(server.url) as holder:
        await holder.reset()
        for _ in range(34):  # three kinds of call: 100 tries
            async with CountingClient(server.url) as client:
                with pytest.raises(RuntimeError) as refusal:
                    await (client.step(Add(1)) if call == "step" else getattr(client, call)())
            assert isinstance(refusal.value, CapacityReached)
            assert (refusal.value.active_sessions, refusal.value.max_sessions) == (1, 1)
            assert str(refusal.value) == (
                "Server error: Server at capacity: 1/1 sessions active. (code: CAPACITY_REACHED)"
            )
        assert (await holder.step(Add(1))).observation == Count(1)


async def test_a_refused_client_gets_a_session_as_soon_as_one_is_free() -> None:
    async with ScriptedServer(capacity=1) as server:
        holder, waiting = CountingClient(server.url), CountingClient(server.url)
        await holder.reset()
        with pytest.raises(CapacityReached):
            await waiting.reset()
        await holder.close()
        assert (await waiting.reset()).observation == Count(0)
        await waiting.close()


async def test_a_broken_factory_is_told_apart_from_a_full_server() -> None:
    async with ScriptedServer(factory_error="no ROM") as server, CountingClient(server.url) as client:
        with pytest.raises(FactoryFailed, match=r"^Server error: no ROM \(code: FACTORY_ERROR\)$"):
            await client.reset()


async def test_an_answer_that_is_no_frame_is_an_error_that_says_what_came() -> None:
    async with ScriptedServer([Turn("hello")]) as server, CountingClient(server.url) as client:
        with pytest.raises(BadReply, match="not an OpenEnv frame"):
            await client.reset()


async def test_what_is_no_json_is_refused_before_anything_is_sent(server: ScriptedServer) -> None:
    async with CountingClient(server.url) as client:
        with pytest.raises(TypeError):
            await client.reset(seed=object())
        assert server.requests == []
        assert (await client.reset()).observation == Count(0)


# Timeouts and late replies


async def test_a_timeout_is_a_timeout_error_that_says_what_was_sent(server: ScriptedServer) -> None:
    async with CountingClient(server.url, message_timeout_s=SHORT) as client:
        server.hold_reply()
        with pytest.raises(TimeoutError) as failure:
            await client.reset()
        assert isinstance(failure.value, ReplyTimeout)
        assert str(failure.value) == "No reply to reset within 0.05 s; it was sent and its outcome is unknown"


async def test_timeout_s_bounds_one_step(server: ScriptedServer) -> None:
    async with CountingClient(server.url, late_reply_s=5) as client:
        await client.reset()
        server.hold_reply()
        with pytest.raises(ReplyTimeout, match=r"within 0\.05 s"):
            await client.step(Add(1), timeout_s=SHORT)


async def test_other_arguments_of_step_are_ignored_as_openenvs_client_does(server: ScriptedServer) -> None:
    async with CountingClient(server.url) as client:
        await client.reset()
        assert (await client.step(Add(1), whatever=3)).reward == 1.0


async def give_up_by_timeout(client: CountingClient, server: ScriptedServer) -> None:
    with pytest.raises(ReplyTimeout):
        await client.step(Add(1), timeout_s=SHORT)


async def give_up_by_cancellation(client: CountingClient, server: ScriptedServer) -> None:
    sent = len(server.requests)
    stepping = asyncio.ensure_future(client.step(Add(1)))
    await server.until(lambda: len(server.requests) > sent)
    stepping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stepping


async def give_up_by_wait_for(client: CountingClient, server: ScriptedServer) -> None:
    with pytest.raises((TimeoutError, asyncio.TimeoutError)):
        await asyncio.wait_for(client.step(Add(1)), SHORT)


give_ups = pytest.mark.parametrize("give_up", [give_up_by_timeout, give_up_by_cancellation, give_up_by_wait_for])
GiveUp = Callable[[CountingClient, ScriptedServer], Any]


@give_ups
async def test_after_giving_up_the_episode_is_lost_until_reset(give_up: GiveUp, server: ScriptedServer) -> None:
    async with CountingClient(server.url) as client:
        await client.reset()
        server.hold_reply()
        await give_up(client, server)
        server.release_reply()
        sent = len(server.requests)
        for call in (client.step(Add(5)), client.state(), client.connect(), client.step(Add(5))):
            try:
                assert await call is client  # connecting again is allowed, and brings no episode back
            except EpisodeLost as lost:
                assert str(lost).startswith("The episode is lost: ") and "so that its outcome is unknown" in str(lost)
                assert lost.next_step == "Call reset to start a new episode."
        assert len(server.requests) == sent
        assert (await client.reset()).observation == Count(0)
        assert await client.step(Add(2)) == StepResult(Count(2), 2.0, False)


@give_ups
async def test_with_late_reply_s_the_next_step_gets_the_late_outcome_told_and_is_not_sent(
    give_up: GiveUp, server: ScriptedServer
) -> None:
    async with CountingClient(server.url, late_reply_s=5) as client:
        await client.reset()
        server.hold_reply()
        await give_up(client, server)
        server.release_reply()
        sent = len(server.requests)
        with pytest.raises(LateReply) as late:
            await client.step(Add(5))
        assert late.value.result == StepResult(Count(1), 1.0, False)
        assert len(server.requests) == sent
        assert (await client.step(Add(2))).observation == Count(3)


async def test_a_late_failure_is_told_as_the_cause(server: ScriptedServer) -> None:
    async with CountingClient(server.url, late_reply_s=5) as client:
        await client.reset()
        server.hold_reply()
        with pytest.raises(ReplyTimeout):
            await client.step(Add("much"), timeout_s=SHORT)  # type: ignore[arg-type]
        server.release_reply()
        with pytest.raises(LateReply) as late:
            await client.step(Add(5))
        assert late.value.payload is None and isinstance(late.value.__cause__, EnvironmentFault)


async def test_state_answers_after_a_timeout_and_leaves_the_telling_to_the_next_step(server: ScriptedServer) -> None:
    async with CountingClient(server.url, late_reply_s=5) as client:
        await client.reset()
        server.hold_reply()
        with pytest.raises(ReplyTimeout):
            await client.step(Add(1), timeout_s=SHORT)
        server.release_reply()
        assert await client.state() == 1
        with pytest.raises(LateReply):
            await client.step(Add(5))
        assert (await client.step(Add(5))).observation == Count(6)


async def test_a_late_state_is_nobodys_business(server: ScriptedServer) -> None:
    async with CountingClient(server.url, late_reply_s=5, message_timeout_s=SHORT) as client:
        await client.reset()
        server.hold_reply()
        with pytest.raises(ReplyTimeout):
            await client.state()
        server.release_reply()
        assert (await client.step(Add(4))).observation == Count(4)


async def test_reset_drops_what_came_late_and_keeps_the_session(server: ScriptedServer) -> None:
    async with CountingClient(server.url, late_reply_s=5) as client:
        await client.reset()
        server.hold_reply()
        with pytest.raises(ReplyTimeout):
            await client.step(Add(1), timeout_s=SHORT)
        server.release_reply()
        assert (await client.reset()).observation == Count(0)
        assert (await client.step(Add(4))).observation == Count(4)
    assert server.sessions_opened == 1


async def test_a_reply_that_never_comes_loses_the_episode_and_reset_takes_another_session(server: ScriptedServer) -> None:
    async with CountingClient(server.url, late_reply_s=SHORT) as client:
        await client.reset()
        server.hold_reply()
        with pytest.raises(ReplyTimeout):
            await client.step(Add(1), timeout_s=SHORT)
        with pytest.raises(EpisodeLost, match=r"the reply to an earlier step did not come"):
            await client.step(Add(1))
        with pytest.raises(EpisodeLost):
            await client.state()
        server.release_reply()
        assert (await client.reset()).observation == Count(0)
    assert server.sessions_opened == 2


async def test_a_one_session_server_that_still_runs_the_given_up_step_is_asked_until_it_is_free() -> None:
    async with ScriptedServer(capacity=1) as server:
        async with CountingClient(server.url, message_timeout_s=5) as client:
            await client.reset()
            server.hold_reply()
            with pytest.raises(ReplyTimeout):
                await client.step(Add(1), timeout_s=SHORT)
            resetting = asyncio.ensure_future(client.reset())
            await server.until(lambda: server.sessions_opened >= 3)  # refused once, and asked again
            server.release_reply()
            assert (await resetting).observation == Count(0)


async def test_a_close_ends_that_asking() -> None:
    async with ScriptedServer(capacity=1) as server:
        client = CountingClient(server.url, message_timeout_s=5)
        await client.reset()
        server.hold_reply()
        with pytest.raises(ReplyTimeout):
            await client.step(Add(1), timeout_s=SHORT)
        resetting = asyncio.ensure_future(client.reset())
        await server.until(lambda: server.sessions_opened >= 3)
        await client.close()
        with pytest.raises((EpisodeLost, CapacityReached)):
            await asyncio.wait_for(resetting, 2)
        server.release_reply()
        assert (await client.reset()).observation == Count(0)
        await client.close()


# The far end


async def cut(server: ScriptedServer) -> None:
    server.cut()


async def hang_up(server: ScriptedServer) -> None:
    await server.hang_up(1011, "too slow")


far_ends = pytest.mark.parametrize("go", [cut, hang_up])
Go = Callable[[ScriptedServer], Any]


@far_ends
async def test_a_connection_without_an_episode_is_replaced_by_the_next_call(go: Go, server: ScriptedServer) -> None:
    async with CountingClient(server.url) as client:
        assert await client.state() == 0
        await go(server)
        await server.until(lambda: server.sessions_open == 0)
        assert await client.state() == 0
        assert (await client.reset()).observation == Count(0)


@far_ends
async def test_an_episode_whose_connection_ended_is_lost_at_once_until_reset(go: Go, server: ScriptedServer) -> None:
    async with CountingClient(server.url) as client:
        await client.reset()
        await go(server)
        await server.until(lambda: server.sessions_open == 0)
        for call in (client.step, client.step):
            with pytest.raises(EpisodeLost):
                await asyncio.wait_for(call(Add(1)), 5)
        with pytest.raises(EpisodeLost):
            await client.state()
        assert (await client.reset()).observation == Count(0)
        assert (await client.step(Add(1))).observation == Count(1)


@far_ends
async def test_reset_recovers_without_anybody_having_noticed_the_end(go: Go, server: ScriptedServer) -> None:
    async with CountingClient(server.url) as client:
        await client.reset()
        await go(server)
        assert (await client.reset()).observation == Count(0)


async def test_a_far_end_that_dies_in_mid_step_is_an_error_at_once_and_reset_recovers(server: ScriptedServer) -> None:
    async with CountingClient(server.url) as client:
        await client.reset()
        server.hold_reply()
        stepping = asyncio.ensure_future(client.step(Add(1)))
        await server.until(lambda: len(server.requests) == 2)
        server.cut()
        with pytest.raises(EpisodeLost, match="broke"):
            await asyncio.wait_for(stepping, 5)
        server.release_reply()
        assert (await client.reset()).observation == Count(0)


async def test_the_reason_for_a_loss_is_told_each_time(server: ScriptedServer) -> None:
    async with CountingClient(server.url) as client:
        await client.reset()
        await hang_up(server)
        await server.until(lambda: server.sessions_open == 0)
        told = []
        for _ in range(2):
            with pytest.raises(RuntimeError) as lost:
                await client.step(Add(1))
            told.append(str(lost.value))
    assert told == [
        "The episode is lost: the server closed the connection with code 1011 (too slow)"
    ] * 2


async def test_a_server_that_is_gone_for_good_is_a_connection_error_and_the_episode_stays_lost(server: ScriptedServer) -> None:
    async with ScriptedServer() as mortal:
        client = CountingClient(mortal.url)
        await client.reset()
    with pytest.raises(EpisodeLost):
        await client.step(Add(1))
    for _ in range(2):
        with pytest.raises(ConnectionError, match="Failed to connect to ws://"):
            await client.reset()
        with pytest.raises(EpisodeLost):
            await client.step(Add(1))
    await client.close()


async def test_disconnect_is_a_new_beginning_that_the_user_asked_for(server: ScriptedServer) -> None:
    client = CountingClient(server.url)
    await client.reset()
    await client.step(Add(3))
    await client.disconnect()
    assert await client.state() == 0
    await client.close()
    assert server.close_frames == 2


async def test_no_message_is_sent_twice(server: ScriptedServer) -> None:
    async with CountingClient(server.url) as client:
        await client.reset(seed=1)
        server.cut()
        await server.until(lambda: server.sessions_open == 0)
        with pytest.raises(EpisodeLost):
            await client.step(Add(1))
        await client.reset(seed=2)
    assert [request.frame["type"] for request in server.requests] == ["reset", "reset"]
