"""One agent's place: its episode, late replies, losses. The environment is a scripted server behind a real WebSocket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from testkit.gateways import environment_settings
from testkit.scripted import ScriptedServer, Wire, error, observation

from openenv_client.errors import BadReply, EnvironmentFault, EpisodeLost, FactoryFailed, ReplyTimeout
from openenv_client.frames import JsonObject, Observation, State
from openenv_gateway.errors import EpisodeOver, LaneBusy, StillOpening, UnknownHandle
from openenv_gateway.mapping.actions import Request
from openenv_gateway.pool.pool import Pool
from openenv_gateway.sessions.lane import AUTO_RESET, OPENED, OVER_AT_ONCE, RESET_LATE, Lane
from openenv_gateway.sessions.outcome import ActionLate, Late
from openenv_gateway.sessions.phases import Phase

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


# --- an ordinary episode ---------------------------------------------------------------------------------------------


async def test_reset_step_and_state_play_one_episode_on_one_session() -> None:
    async with ScriptedServer() as server, lane_on(server) as lane:
        first = await lane.call(Request("reset", {"seed": 3}), "reset")
        second = await lane.call(add(4), "step")
        third = await lane.call(STATE, "state")
        assert isinstance(first.reply, Observation) and first.reply.observation["echo"] == {"seed": 3}
        assert (first.opened, first.notice, first.step) == (True, None, 0)
        assert second.reply == Observation({"count": 4, "echo": {"add": 4}}, 4.0, False, {})
        assert (second.opened, second.step, second.episode) == (False, 1, first.episode)
        assert third.reply == State({"count": 4})
        assert server.sessions_opened == 1


async def test_a_step_without_reset_resets_first_with_the_configured_arguments_and_says_so() -> None:
    async with ScriptedServer() as server, lane_on(server, reset={"seed": 9}) as lane:
        outcome = await lane.call(add(1), "step")
        assert (outcome.notice, outcome.opened, outcome.step) == (OPENED, True, 1)
        assert frames(server) == [{"type": "reset", "data": {"seed": 9}}, {"type": "step", "data": {"add": 1}}]


async def test_observe_shows_the_latest_observation_without_asking_the_environment() -> None:
    async with ScriptedServer() as server, lane_on(server, mapping_exposure="agent") as lane:
        assert counted((await lane.call(OBSERVE, "observe")).reply) == 0
        await lane.call(add(2), "step")
        assert counted((await lane.call(OBSERVE, "observe")).reply) == 2
        assert [frame["type"] for frame in frames(server)] == ["reset", "step"]


async def test_an_error_frame_is_told_and_the_episode_goes_on() -> None:
    async with ScriptedServer() as server, lane_on(server) as lane:
        await lane.call(RESET, "reset")
        with pytest.raises(EnvironmentFault, match="VALIDATION_ERROR"):
            await lane.call(Request("step", {"nonsense": 1}), "step")
        assert counted((await lane.call(add(1), "step")).reply) == 1
        assert server.sessions_opened == 1


async def test_a_reset_that_fails_gives_the_session_back_and_the_next_one_opens_another() -> None:
    replies = iter([error("EXECUTION_ERROR", "no ROM"), observation(count=0)])
    async with ScriptedServer(respond=lambda session, frame: next(replies)) as server, lane_on(server) as lane:
        with pytest.raises(EnvironmentFault, match="no ROM"):
            await lane.call(RESET, "reset")
        assert lane.phase is Phase.NEW
        assert counted((await lane.call(RESET, "reset")).reply) == 0
        assert server.sessions_opened == 2


async def test_a_broken_factory_is_told_and_leaves_no_session() -> None:
    async with ScriptedServer(factory_error="no display") as server, lane_on(server) as lane:
        with pytest.raises(FactoryFailed, match="no display"):
            await lane.call(RESET, "reset")
        await server.until(lambda: server.sessions_open == 0)


# --- after done ------------------------------------------------------------------------------------------------------


async def test_a_step_after_done_is_refused_and_not_sent() -> None:
    async with ScriptedServer() as server, lane_on(server) as lane:
        assert (await lane.call(add(10), "step")).reply.done  # type: ignore[union-attr]
        with pytest.raises(EpisodeOver):
            await lane.call(add(1), "step")
        assert len(server.requests) == 2
        assert counted((await lane.call(RESET, "reset")).reply) == 0
        assert counted((await lane.call(add(1), "step")).reply) == 1


async def test_auto_reset_starts_the_next_episode_and_does_not_play_an_action_meant_for_the_old_one() -> None:
    async with ScriptedServer() as server, lane_on(server, after_done="auto_reset", reset={"seed": 1}) as lane:
        first = await lane.call(add(10), "step")
        second = await lane.call(add(1), "step")
        assert (second.notice, second.step, counted(second.reply)) == (AUTO_RESET, 0, 0)
        assert second.episode != first.episode
        assert frames(server)[-1] == {"type": "reset", "data": {"seed": 1}}


async def test_pass_sends_a_step_after_done_on() -> None:
    async with ScriptedServer() as server, lane_on(server, after_done="pass") as lane:
        await lane.call(add(10), "step")
        assert counted((await lane.call(add(1), "step")).reply) == 11


# --- late replies ----------------------------------------------------------------------------------------------------


async def late_step(server: ScriptedServer, lane: Lane) -> None:
    """An episode whose step +3 timed out; its reply is on its way."""
    await lane.call(RESET, "reset")
    server.hold_reply()
    with pytest.raises(ReplyTimeout):
        await lane.call(add(3), "step", timeout_s=0.05)
    server.release_reply()


async def test_a_step_that_outlasted_its_timeout_never_answers_the_state_that_follows() -> None:
    async with ScriptedServer() as server, lane_on(server) as lane:
        await late_step(server, lane)
        outcome = await lane.call(STATE, "state")
        assert outcome.reply == State({"count": 3})
        assert outcome.late == Late("step", "step", {"add": 3}, Observation({"count": 3, "echo": {"add": 3}}, 3.0, False, {}))
        assert (await lane.call(STATE, "state")).late is None


async def test_a_retry_after_a_timeout_is_not_executed_but_told_what_came_of_the_first() -> None:
    async with ScriptedServer() as server, lane_on(server) as lane:
        await late_step(server, lane)
        with pytest.raises(ActionLate) as caught:
            await lane.call(add(3), "step")
        assert counted(caught.value.late.reply) == 3
        assert [frame["type"] for frame in frames(server)] == ["reset", "step"]
        assert counted((await lane.call(add(1), "step")).reply) == 4


async def test_late_reply_execute_plays_the_new_step_and_tells_both() -> None:
    async with ScriptedServer() as server, lane_on(server, late_reply="execute") as lane:
        await late_step(server, lane)
        outcome = await lane.call(add(1), "step")
        assert counted(outcome.reply) == 4
        assert outcome.late is not None and counted(outcome.late.reply) == 3


async def test_a_late_outcome_is_not_lost_when_the_call_that_collected_it_fails() -> None:
    async with ScriptedServer() as server, lane_on(server, late_reply="execute") as lane:
        await late_step(server, lane)
        with pytest.raises(EnvironmentFault):
            await lane.call(Request("step", {}), "step")
        outcome = await lane.call(STATE, "state")
        assert outcome.late is not None and counted(outcome.late.reply) == 3


async def test_a_late_error_frame_is_told_too() -> None:
    async with ScriptedServer() as server, lane_on(server) as lane:
        await lane.call(RESET, "reset")
        server.hold_reply()
        with pytest.raises(ReplyTimeout):
            await lane.call(Request("step", {}), "step", timeout_s=0.05)
        server.release_reply()
        outcome = await lane.call(STATE, "state")
        assert outcome.late is not None and outcome.late.reply.code == "VALIDATION_ERROR"  # type: ignore[union-attr]


async def test_a_cancelled_step_is_owed_just_as_a_late_one() -> None:
    async with ScriptedServer() as server, lane_on(server) as lane:
        await lane.call(RESET, "reset")
        server.hold_reply()
        await cancelled(await started(server, lane.call(add(3), "step"), requests=2))
        server.release_reply()
        with pytest.raises(ActionLate):
            await lane.call(add(3), "step")


async def test_a_late_state_reply_is_dropped() -> None:
    async with ScriptedServer() as server, lane_on(server) as lane:
        await lane.call(RESET, "reset")
        server.hold_reply()
        await cancelled(await started(server, lane.call(STATE, "state"), requests=2))
        server.release_reply()
        outcome = await lane.call(add(1), "step")
        assert (counted(outcome.reply), outcome.late) == (1, None)


async def test_a_late_done_ends_the_episode() -> None:
    async with ScriptedServer() as server, lane_on(server) as lane:
        await lane.call(RESET, "reset")
        server.hold_reply()
        await cancelled(await started(server, lane.call(add(10), "step"), requests=2))
        server.release_reply()
        await lane.call(STATE, "state")
        with pytest.raises(EpisodeOver):
            await lane.call(add(1), "step")


async def test_an_owed_reply_that_does_not_come_loses_the_episode() -> None:
    async with ScriptedServer() as server, lane_on(server, timeouts_late_reply_s=0.05) as lane:
        await lane.call(RESET, "reset")
        server.hold_reply()
        with pytest.raises(ReplyTimeout):
            await lane.call(add(3), "step", timeout_s=0.05)
        with pytest.raises(EpisodeLost, match="did not come"):
            await lane.call(STATE, "state")
        server.release_reply()
        assert counted((await lane.call(RESET, "reset")).reply) == 0
        assert server.sessions_opened == 2


async def test_a_reset_that_was_given_up_goes_on_and_answers_the_reset_that_repeats_it() -> None:
    async with ScriptedServer() as server, lane_on(server) as lane:
        server.hold_reply()
        await cancelled(await started(server, lane.call(Request("reset", {"seed": 5}), "reset"), requests=1))
        server.release_reply()
        outcome = await lane.call(Request("reset", {"seed": 5}), "reset")
        assert (counted(outcome.reply), outcome.notice) == (0, RESET_LATE)
        assert len(server.requests) == 1


async def test_a_reset_with_other_arguments_is_carried_out() -> None:
    async with ScriptedServer() as server, lane_on(server) as lane:
        server.hold_reply()
        await cancelled(await started(server, lane.call(Request("reset", {"seed": 5}), "reset"), requests=1))
        server.release_reply()
        outcome = await lane.call(Request("reset", {"seed": 6}), "reset")
        assert outcome.reply == Observation({"count": 0, "echo": {"seed": 6}}, None, False, {})
        assert outcome.late is not None and outcome.late.kind == "reset"


# --- losses ----------------------------------------------------------------------------------------------------------


async def test_a_server_that_dies_in_mid_step_loses_the_episode_and_says_what_was_lost() -> None:
    async with ScriptedServer() as server, lane_on(server) as lane:
        await lane.call(RESET, "reset")
        await lane.call(add(1), "step")
        server.hold_reply()
        task = await started(server, lane.call(add(2), "step"), requests=3)
        server.cut()
        with pytest.raises(EpisodeLost, match="broke"):
            await task
        assert (lane.phase, lane.step_count) == (Phase.LOST, 1)


async def test_a_lost_lane_is_never_moved_to_a_fresh_environment_in_silence() -> None:
    async with ScriptedServer() as server, lane_on(server) as lane:
        await lane.call(RESET, "reset")
        server.cut()
        for request in (add(1), STATE, add(2)):
            with pytest.raises(EpisodeLost):
                await lane.call(request, request.kind)
        assert server.sessions_opened == 1
        outcome = await lane.call(RESET, "reset")
        assert (outcome.opened, counted(outcome.reply)) == (True, 0)


async def test_where_agents_cannot_reset_a_loss_is_told_once_and_observe_then_opens_anew() -> None:
    async with ScriptedServer() as server, lane_on(server, mapping_exposure="agent") as lane:
        await lane.call(OBSERVE, "observe")
        server.cut()
        with pytest.raises(EpisodeLost) as caught:
            await lane.call(add(1), "step")
        assert "observe" in caught.value.next_step
        outcome = await lane.call(OBSERVE, "observe")
        assert (outcome.notice, counted(outcome.reply)) == (OPENED, 0)


async def test_a_session_that_was_given_up_is_told() -> None:
    async with ScriptedServer() as server, lane_on(server) as lane:
        await lane.call(RESET, "reset")
        lane.give_up_session("nothing was called for 1800 s")
        await server.until(lambda: server.sessions_open == 0)
        with pytest.raises(EpisodeLost, match="1800 s"):
            await lane.call(STATE, "state")


# --- one call at a time ----------------------------------------------------------------------------------------------


async def test_calls_of_one_lane_wait_for_each_other_in_order() -> None:
    async with ScriptedServer() as server, lane_on(server) as lane:
        await lane.call(RESET, "reset")
        outcomes = await asyncio.gather(*[lane.call(add(1), "step") for _ in range(5)])
        assert [counted(outcome.reply) for outcome in outcomes] == [1, 2, 3, 4, 5]


async def test_a_full_queue_is_refused_and_the_waiting_calls_are_not_harmed() -> None:
    async with ScriptedServer() as server, lane_on(server, lane_queue=2) as lane:
        await lane.call(RESET, "reset")
        server.hold_reply()
        first = await started(server, lane.call(add(1), "step"), requests=2)
        waiting = [asyncio.ensure_future(lane.call(add(1), "step")) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(LaneBusy):
            await lane.call(add(1), "step")
        server.release_reply()
        outcomes = await asyncio.gather(first, *waiting)
        assert [counted(outcome.reply) for outcome in outcomes] == [1, 2, 3]


# --- resets that fail ------------------------------------------------------------------------------------------------


async def test_a_first_reset_that_fails_in_its_metadata_gives_the_session_back_and_can_be_tried_again() -> None:
    answers = [observation(done=True, metadata={"error": "no level"}), observation(count=0)]
    async with ScriptedServer(respond=lambda session, frame: answers.pop(0)) as server, lane_on(server) as lane:
        with pytest.raises(EnvironmentFault, match="no level") as fault:
            await lane.call(RESET, "reset")
        assert fault.value.code == "RESET_FAILED"
        assert lane.phase is Phase.NEW
        await server.until(lambda: server.sessions_open == 0)
        assert (await lane.call(RESET, "reset")).opened


async def test_an_episode_that_is_over_in_its_reset_is_told_with_a_remark() -> None:
    answers = [observation(done=True), observation(done=True), observation(count=0)]
    async with ScriptedServer(respond=lambda session, frame: answers.pop(0)) as server, lane_on(server) as lane:
        notices = [(await lane.call(RESET, "reset")).notice for _ in range(3)]
    assert notices == [OVER_AT_ONCE, OVER_AT_ONCE, None]


# --- the end ---------------------------------------------------------------------------------------------------------


async def test_closing_ends_a_call_in_flight_and_the_environment_session() -> None:
    async with ScriptedServer() as server, lane_on(server) as lane:
        await lane.call(RESET, "reset")
        server.hold_reply()
        task = await started(server, lane.call(add(1), "step"), requests=2)
        await lane.close()
        with pytest.raises(EpisodeLost):
            await task
        server.release_reply()
        await server.until(lambda: server.sessions_open == 0)
        with pytest.raises(UnknownHandle):
            await lane.call(STATE, "state")


async def test_closing_while_opening_leaves_no_session() -> None:
    async with ScriptedServer() as server, lane_on(server) as lane:
        server.hold_reply()
        task = await started(server, lane.call(RESET, "reset"), requests=1)
        await lane.close()
        with pytest.raises(EpisodeLost, match="closed"):
            await task
        server.release_reply()
        await server.until(lambda: server.sessions_open == 0)


@pytest.mark.parametrize("reply", ["not json", '{"type": "observation"}', Wire.ABORT])
async def test_garbage_from_the_server_is_an_error_of_that_call(reply: Any) -> None:
    answers: list[Callable[[], Any]] = [lambda: observation(count=0), lambda: reply]
    async with ScriptedServer(respond=lambda session, frame: answers.pop(0)()) as server, lane_on(server) as lane:
        await lane.call(RESET, "reset")
        with pytest.raises((RuntimeError,)) as caught:
            await lane.call(add(1), "step")
        assert caught.value.code in ("BAD_REPLY", "EPISODE_LOST")  # type: ignore[attr-defined]


# --- outcomes that nobody got ----------------------------------------------------------------------------------------


async def test_a_retry_that_waits_behind_a_call_whose_caller_left_is_told_the_outcome_and_not_executed() -> None:
    async with ScriptedServer() as server, lane_on(server) as lane:
        await lane.call(RESET, "reset")
        server.hold_reply()
        left = False
        first = await started(server, lane.call(add(1), "step", gone=lambda: left), requests=2)
        retry = asyncio.ensure_future(lane.call(add(1), "step"))
        await asyncio.sleep(0)
        left = True
        server.release_reply()
        await first
        with pytest.raises(ActionLate) as caught:
            await retry
        assert counted(caught.value.late.reply) == 1
        assert len(server.requests) == 2


async def test_only_the_outcome_that_was_not_delivered_is_told_and_an_error_is_one() -> None:
    async with ScriptedServer() as server, lane_on(server) as lane:
        await lane.call(RESET, "reset")
        await lane.call(add(1), "step")
        with pytest.raises(EnvironmentFault):
            await lane.call(Request("step", {"bad": 1}), "step", gone=lambda: True)
        with pytest.raises(ActionLate) as caught:
            await lane.call(add(2), "step")
        assert caught.value.late.reply.code == "VALIDATION_ERROR"  # type: ignore[union-attr]
        assert counted((await lane.call(add(2), "step")).reply) == 3


async def test_a_late_outcome_whose_telling_was_not_delivered_is_told_again() -> None:
    async with ScriptedServer() as server, lane_on(server) as lane:
        await late_step(server, lane)
        with pytest.raises(ActionLate):
            await lane.call(add(3), "step", gone=lambda: True)
        with pytest.raises(ActionLate):
            await lane.call(add(3), "step")
        assert counted((await lane.call(add(3), "step")).reply) == 6


async def test_a_refusal_of_the_gateway_that_was_not_delivered_tells_nothing_old() -> None:
    async with ScriptedServer() as server, lane_on(server) as lane:
        await lane.call(add(10), "step")
        with pytest.raises(EpisodeOver):
            await lane.call(add(1), "step", gone=lambda: True)
        assert (await lane.call(STATE, "state")).late is None


async def test_two_late_outcomes_are_both_told_also_where_steps_are_executed() -> None:
    async with ScriptedServer() as server, lane_on(server, late_reply="execute") as lane:
        await late_step(server, lane)
        # The first late outcome is in; the step that would tell it is given up too.
        left = True
        await lane.call(add(1), "step", gone=lambda: left)
        with pytest.raises(ActionLate) as caught:
            await lane.call(add(1), "step")
        assert counted(caught.value.late.reply) == 3
        outcome = await lane.call(add(1), "step")
        assert outcome.late is not None and counted(outcome.late.reply) == 4
        assert counted(outcome.reply) == 5


async def test_an_impatient_caller_cannot_put_off_the_end_of_an_owed_reply() -> None:
    async with ScriptedServer() as server, lane_on(server, timeouts_late_reply_s=0.3) as lane:
        await lane.call(RESET, "reset")
        server.hold_reply()
        with pytest.raises(ReplyTimeout):
            await lane.call(add(3), "step", timeout_s=0.05)
        given_up: list[float] = []
        with pytest.raises(EpisodeLost):
            while len(given_up) < 100:
                try:
                    async with asyncio.timeout(0.1):
                        await lane.call(STATE, "state")
                except TimeoutError:
                    given_up.append(0.1)
        assert len(given_up) < 10
        server.release_reply()


async def test_a_reset_starts_anew_where_the_connection_broke_meanwhile() -> None:
    async with ScriptedServer() as server, lane_on(server) as lane:
        server.hold_reply()
        await cancelled(await started(server, lane.call(RESET, "reset"), requests=1))
        server.release_reply()
        server.cut()
        await server.until(lambda: server.sessions_open == 0)
        outcome = await lane.call(RESET, "reset")
        assert (outcome.opened, outcome.notice, server.sessions_opened) == (True, None, 2)
        assert counted((await lane.call(add(1), "step")).reply) == 1


async def test_a_reset_is_not_answered_by_an_automatic_one_with_other_arguments() -> None:
    settings = {"after_done": "auto_reset", "reset": {"seed": 1}, "timeouts_reset_s": 0.1}
    async with ScriptedServer() as server, lane_on(server, **settings) as lane:
        await lane.call(Request("reset", {"seed": 5}), "reset")
        await lane.call(add(10), "step")
        server.hold_reply()
        with pytest.raises(ReplyTimeout):
            await lane.call(add(1), "step")
        server.release_reply()
        outcome = await lane.call(Request("reset", {"seed": 5}), "reset")
        assert outcome.reply == Observation({"count": 0, "echo": {"seed": 5}}, None, False, {})


@pytest.mark.parametrize("ticks", range(12))
async def test_a_cancellation_at_any_tick_of_an_opening_loses_no_news(ticks: int) -> None:
    async with ScriptedServer() as server, lane_on(server) as lane:
        task = await started(server, lane.call(add(1), "step"), requests=1)
        for _ in range(ticks):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        if task.cancelled():
            with pytest.raises(ActionLate):
                await lane.call(add(1), "step")
        sent = len(server.requests)
        assert counted((await lane.call(add(1), "step")).reply) == sent  # each step that was sent counts once
        assert server.sessions_opened == 1


async def test_a_reply_of_the_wrong_kind_ends_the_session_because_replies_may_be_off_by_one() -> None:
    answers = [observation(count=0), observation(count=0), {"type": "state", "data": {}}]
    async with ScriptedServer(respond=lambda session, frame: answers.pop(0)) as server, lane_on(server) as lane:
        await lane.call(RESET, "reset")
        with pytest.raises(BadReply):
            await lane.call(STATE, "state")
        with pytest.raises(EpisodeLost):
            await lane.call(add(1), "step")
        await server.until(lambda: server.sessions_open == 0)


async def test_where_agents_cannot_reset_a_step_never_opens_a_new_episode_after_a_loss() -> None:
    async with ScriptedServer() as server, lane_on(server, mapping_exposure="agent") as lane:
        await lane.call(OBSERVE, "observe")
        server.cut()
        for _ in range(3):
            with pytest.raises(EpisodeLost):
                await lane.call(add(1), "step")
        assert (await lane.call(OBSERVE, "observe")).notice == OPENED


async def test_a_caller_whom_nobody_cancelled_gets_an_error_when_the_lane_is_closed() -> None:
    async with ScriptedServer() as server, lane_on(server) as lane:
        server.hold_reply()
        await cancelled(await started(server, lane.call(RESET, "reset"), requests=1))
        waiting = asyncio.ensure_future(lane.call(STATE, "state"))
        await asyncio.sleep(0)
        await lane.close()
        with pytest.raises((UnknownHandle, EpisodeLost)):
            await waiting
        server.release_reply()


async def test_a_call_on_a_lane_that_is_still_opening_is_told_to_come_again() -> None:
    async with ScriptedServer() as server, lane_on(server, timeouts_late_reply_s=0.05) as lane:
        server.hold_reply()
        await cancelled(await started(server, lane.call(RESET, "reset"), requests=1))
        with pytest.raises(StillOpening) as caught:
            await lane.call(add(1), "step")
        assert caught.value.retryable
        server.release_reply()
        assert counted((await lane.call(RESET, "reset")).reply) == 0
