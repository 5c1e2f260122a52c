"""sessions/lane.py: whose turn it is, whoever gives up and whenever: no turn is lost, none is taken twice."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from testkit.lanes import RESET, lane_on, started
from testkit.scripted import ScriptedServer
from testkit.suspensions import every_await_point

from openenv_gateway.errors import LaneBusy
from openenv_gateway.mapping.actions import Request
from openenv_gateway.sessions.lane import Lane
from openenv_gateway.sessions.outcome import ActionLate, Outcome

QUEUE = 2
"""Calls that may wait behind the one in flight."""
LONG_S = 10.0


def tagged(tag: int) -> Request:
    return Request("step", {"add": 0, "tag": tag})


async def passes(count: int = 1) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def caught_up(lane: Lane) -> None:
    """Call until there is nothing late to be told any more."""
    for tag in range(-10, 0):
        try:
            await lane.call(tagged(tag), "step")
        except ActionLate:
            continue
        return
    raise AssertionError("after ten calls there are still late outcomes")


async def has_room_for_exactly_as_many_as_ever(server: ScriptedServer, lane: Lane) -> None:
    """One call in flight and QUEUE behind it are let in, one more is not: the count of calls has not drifted."""
    assert not lane.busy
    await caught_up(lane)
    server.hold_reply()
    calls = [await started(server, lane.call(tagged(-100), "step"), len(server.requests) + 1)]
    calls += [asyncio.ensure_future(lane.call(tagged(-101 - at), "step")) for at in range(QUEUE)]
    await passes(2)
    with pytest.raises(LaneBusy):
        await lane.call(tagged(-200), "step")
    server.release_reply()
    outcomes = await asyncio.wait_for(asyncio.gather(*calls), LONG_S)
    assert [outcome.reply.observation["echo"]["tag"] for outcome in outcomes] == [-100, -101, -102]
    assert not lane.busy


@pytest.mark.parametrize("use", ["call", "relay"])
async def test_a_call_cancelled_at_any_point_of_waiting_for_its_turn_or_of_having_it_gives_the_turn_on(use: str) -> None:
    async with ScriptedServer() as server, lane_on(server, lane_queue=QUEUE) as lane:
        await lane.call(RESET, "reset")
        tags = iter(range(1000))

        async def with_one_ahead_and_one_behind() -> None:
            """Only what waits in the middle is cancelled by hand of the loop; the others are asked for their end."""
            async with asyncio.TaskGroup() as calls:
                calls.create_task(quietly(lane, next(tags)))
                await passes()
                calls.create_task(quietly(lane, next(tags)))
                if use == "call":
                    await quietly(lane, next(tags))
                else:
                    await lane.relay("step", {"add": 0, "tag": next(tags)}, 5.0)

        points = 0
        async for _ in every_await_point(with_one_ahead_and_one_behind):
            points += 1
            await has_room_for_exactly_as_many_as_ever(server, lane)
        assert points > 3
        sent = [received.frame["data"].get("tag") for received in server.requests if received.frame["type"] == "step"]
        own = [tag for tag in sent if tag >= 0]
        assert len(own) == len(set(own))


async def quietly(lane: Lane, tag: int) -> None:
    """A call that may find that an earlier one's outcome is late."""
    try:
        await lane.call(tagged(tag), "step")
    except ActionLate:
        return


MOVES = st.lists(
    st.one_of(
        st.tuples(st.just("call"), st.integers(0, 3)),
        st.tuples(st.just("call by somebody who leaves"), st.integers(0, 3)),
        st.tuples(st.just("cancel"), st.integers(0, 9)),
        st.tuples(st.sampled_from(["hold", "release", "pass", "relay"]), st.integers(0, 3)),
    ),
    max_size=30,
)


class Play:
    """Moves on one lane, and what became of its calls."""

    def __init__(self, server: ScriptedServer, lane: Lane) -> None:
        self._server, self._lane = server, lane
        self.calls: list[asyncio.Task[Any]] = []

    async def move(self, kind: str, number: int) -> None:
        match kind:
            case "call" | "call by somebody who leaves":
                leaves = kind != "call"
                self._begin(self._lane.call(tagged(len(self.calls)), "step", gone=lambda: leaves))
            case "relay":
                self._begin(self._lane.relay("step", {"add": 0, "tag": len(self.calls)}, 5.0))
            case "cancel":
                if self.calls:
                    self.calls[-1 - number % len(self.calls)].cancel()
            case "hold":
                self._server.hold_reply()
            case "release":
                self._server.release_reply()
        await passes(number + 1)
        assert self._lane.busy <= any(not call.done() for call in self.calls), "busy without a call"

    def _begin(self, call: Any) -> None:
        self.calls.append(asyncio.ensure_future(call))

    async def end(self) -> None:
        """Every call has its own outcome, or a reason why it has none."""
        self._server.release_reply()
        outcomes = await asyncio.wait_for(asyncio.gather(*self.calls, return_exceptions=True), LONG_S)
        for tag, outcome in enumerate(outcomes):
            if isinstance(outcome, Outcome):
                assert outcome.reply.observation["echo"]["tag"] == tag  # type: ignore[union-attr]
            else:
                assert isinstance(outcome, (bytes, ActionLate, LaneBusy, asyncio.CancelledError)), outcome


@settings(max_examples=40)
@given(MOVES, st.sampled_from(["tell", "execute"]))
def test_whoever_calls_and_gives_up_and_whenever_the_count_of_calls_never_drifts(
    moves: list[tuple[str, int]], late_reply: str
) -> None:
    async def play() -> None:
        async with ScriptedServer() as server, lane_on(server, lane_queue=QUEUE, late_reply=late_reply) as lane:
            await lane.call(RESET, "reset")
            game = Play(server, lane)
            for kind, number in moves:
                await game.move(kind, number)
            await game.end()
            await has_room_for_exactly_as_many_as_ever(server, lane)
            tags = [received.frame["data"]["tag"] for received in server.requests if received.frame["type"] == "step"]
            assert len(tags) == len(set(tags)), "an action was sent twice"

    asyncio.run(play())
