"""One agent's place: an ordinary episode, its ends, one call at a time. A scripted server behind a real WebSocket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from testkit.lanes import OBSERVE, RESET, STATE, add, counted, frames, lane_on, started
from testkit.scripted import ScriptedServer, Wire, error, observation

from openenv_client.errors import EnvironmentFault, EpisodeLost, FactoryFailed
from openenv_client.frames import Observation, State
from openenv_gateway.errors import EpisodeOver, LaneBusy, UnknownHandle
from openenv_gateway.mapping.actions import Request
from openenv_gateway.sessions.lane import AUTO_RESET, OPENED, OVER_AT_ONCE
from openenv_gateway.sessions.phases import Phase

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
