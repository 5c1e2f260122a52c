"""Lane.relay: an operator's requests go on as they are, on the lane on which agents may play too."""

from __future__ import annotations

import asyncio
import json

import pytest
from testkit.lanes import lane_on
from testkit.scripted import ScriptedServer, Turn, Wire, error, observation

from openenv_client.errors import EpisodeLost, ReplyTimeout
from openenv_client.frames import Observation
from openenv_gateway.errors import UnknownHandle
from openenv_gateway.mapping.actions import Request
from openenv_gateway.sessions.lane import OPENED, Lane
from openenv_gateway.sessions.outcome import ActionLate
from openenv_gateway.sessions.phases import Phase

LONG = 5.0


def kinds(server: ScriptedServer) -> list[str]:
    return [received.frame["type"] for received in server.requests]


async def given_up(lane: Lane, server: ScriptedServer, amount: int) -> None:
    """An operator's step that was sent and whose reply nobody waits for any more."""
    server.hold_reply()
    sent = len(server.requests)
    task = asyncio.create_task(lane.relay("step", {"add": amount}, LONG))
    await server.until(lambda: len(server.requests) > sent)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    server.release_reply()


async def test_a_reply_comes_back_byte_for_byte() -> None:
    raw = '{"type": "observation",  "data": {"observation": {"big": 1e400}, "reward": NaN, "done": false}}'
    async with ScriptedServer([Turn(raw), Turn(error("EXECUTION_ERROR", "99"))]) as server, lane_on(server) as lane:
        assert await lane.relay("reset", {}, LONG) == raw.encode()
        assert json.loads(await lane.relay("step", {"odd": 1}, LONG)) == error("EXECUTION_ERROR", "99")


async def test_a_first_step_is_not_preceded_by_a_reset_and_opens_the_episode() -> None:
    async with ScriptedServer() as server, lane_on(server) as lane:
        assert json.loads(await lane.relay("step", {"add": 3}, LONG))["data"]["observation"]["count"] == 3
        assert kinds(server) == ["step"]
        assert (lane.phase, lane.step_count, lane.episode is not None) == (Phase.IN_EPISODE, 1, True)


async def test_a_first_request_that_is_refused_leaves_the_session_open() -> None:
    async with ScriptedServer() as server, lane_on(server) as lane:
        assert json.loads(await lane.relay("step", {"wrong": 3}, LONG))["data"]["code"] == "VALIDATION_ERROR"
        assert json.loads(await lane.relay("state", {}, LONG))["data"] == {"count": 0}
        assert (server.sessions_opened, lane.phase) == (1, Phase.IN_EPISODE)


async def test_a_step_after_done_is_sent_whatever_agents_are_told() -> None:
    async with ScriptedServer() as server, lane_on(server, after_done="error") as lane:
        await lane.relay("reset", {}, LONG)
        await lane.relay("step", {"add": 10}, LONG)
        assert lane.phase is Phase.DONE
        assert json.loads(await lane.relay("step", {"add": 1}, LONG))["data"]["observation"]["count"] == 11


async def test_an_agent_and_an_operator_play_one_episode_on_one_lane() -> None:
    async with ScriptedServer() as server, lane_on(server) as lane:
        await lane.relay("reset", {}, LONG)
        outcome = await lane.call(Request("step", {"add": 2}), "step")
        assert (outcome.step, outcome.opened, outcome.notice) == (1, False, None)
        assert json.loads(await lane.relay("state", {}, LONG))["data"] == {"count": 2}
        assert server.sessions_opened == 1


async def test_what_an_operator_gave_up_answers_nobody_and_is_told_to_nobody() -> None:
    async with ScriptedServer() as server, lane_on(server) as lane:
        await lane.relay("reset", {}, LONG)
        await given_up(lane, server, 5)
        assert json.loads(await lane.relay("step", {"add": 1}, LONG))["data"]["observation"]["count"] == 6
        await given_up(lane, server, 2)
        outcome = await lane.call(Request("step", {"add": 1}), "step")
        assert isinstance(outcome.reply, Observation)
        assert (outcome.reply.observation["count"], outcome.late, outcome.step) == (9, None, 4)


async def test_what_an_agent_gave_up_is_still_told_to_the_agent_but_not_after_an_operators_reset() -> None:
    async with ScriptedServer() as server, lane_on(server, timeouts_step_s=0.05) as lane:
        await lane.relay("reset", {}, LONG)
        for resets in (False, True):
            server.hold_reply()
            with pytest.raises(ReplyTimeout):
                await lane.call(Request("step", {"add": 1}), "step")
            server.release_reply()
            await lane.relay("reset" if resets else "state", {}, LONG)
            if resets:
                assert (await lane.call(Request("step", {"add": 1}), "step", LONG)).step == 1
            else:
                with pytest.raises(ActionLate):
                    await lane.call(Request("step", {"add": 1}), "step", LONG)


async def test_a_lost_episode_is_said_until_a_reset() -> None:
    async with ScriptedServer() as server, lane_on(server) as lane:
        await lane.relay("reset", {}, LONG)
        server.cut()
        for _ in range(2):
            with pytest.raises(EpisodeLost):
                await lane.relay("step", {"add": 1}, LONG)
        assert json.loads(await lane.relay("reset", {}, LONG))["data"]["observation"]["count"] == 0
        assert lane.phase is Phase.IN_EPISODE


async def test_a_first_request_on_which_the_connection_breaks_can_be_repeated() -> None:
    script = [Turn(Wire.ABORT), Turn(observation(count=0))]
    async with ScriptedServer(script) as server, lane_on(server) as lane:
        with pytest.raises(EpisodeLost):
            await lane.relay("step", {"add": 1}, LONG)
        assert lane.phase is Phase.NEW
        assert json.loads(await lane.relay("reset", {}, LONG))["data"]["observation"] == {"count": 0}


async def test_a_given_up_opening_is_settled_whatever_its_reply_was() -> None:
    async with ScriptedServer() as server, lane_on(server) as lane:
        server.hold_reply()
        opening = asyncio.create_task(lane.relay("step", {"wrong": 1}, LONG))
        await server.until(lambda: len(server.requests) == 1)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        server.release_reply()
        assert json.loads(await lane.relay("state", {}, LONG))["data"] == {"count": 0}
        assert (server.sessions_opened, lane.phase) == (1, Phase.IN_EPISODE)


async def test_an_agent_that_observes_what_an_operator_has_not_reset_gets_a_reset_and_is_told() -> None:
    async with ScriptedServer() as server, lane_on(server, mapping_exposure="agent") as lane:
        await lane.relay("state", {}, LONG)
        outcome = await lane.call(Request("observe", {}), "observe")
        assert (outcome.notice, kinds(server)) == (OPENED, ["state", "reset"])


async def test_a_closed_lane_relays_nothing() -> None:
    async with ScriptedServer() as server, lane_on(server) as lane:
        await lane.close()
        with pytest.raises(UnknownHandle):
            await lane.relay("reset", {}, LONG)
        assert server.requests == []
