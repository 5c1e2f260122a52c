"""Outcomes that come late, are lost, or were not delivered: told once, to the right agent, and no action is done twice."""

from __future__ import annotations

import asyncio

import pytest
from testkit.lanes import OBSERVE, RESET, STATE, add, cancelled, counted, frames, lane_on, late_step, started
from testkit.scripted import ScriptedServer, observation

from openenv_client.errors import BadReply, EnvironmentFault, EpisodeLost, ReplyTimeout
from openenv_client.frames import Observation, State
from openenv_gateway.errors import EpisodeOver, StillOpening, UnknownHandle
from openenv_gateway.mapping.actions import Request
from openenv_gateway.sessions.lane import OPENED, RESET_LATE
from openenv_gateway.sessions.outcome import ActionLate, Late
from openenv_gateway.sessions.phases import Phase

# --- late replies ----------------------------------------------------------------------------------------------------


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
