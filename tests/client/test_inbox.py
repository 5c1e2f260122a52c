"""inbox.py: whatever callers do, and whenever they give up, a reply goes to the request that it answers or to nobody."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from testkit.clocks import SkippingLoop

from openenv_client.errors import CapacityReached, EpisodeLost, ReplyOwed, ReplyTimeout
from openenv_client.inbox import Inbox
from openenv_client.lifecycle import OVER, WAITING, Phase

LONG = 5.0


async def give_up(waiting: asyncio.Task[bytes]) -> None:
    waiting.cancel()
    await asyncio.wait({waiting}, timeout=LONG)


async def test_a_reply_wakes_its_caller() -> None:
    inbox = Inbox()
    inbox.send("reset")
    waiting = asyncio.create_task(inbox.reply(LONG))
    await asyncio.sleep(0)
    inbox.receive(b"1")
    assert await waiting == b"1"
    assert (inbox.owes, inbox.phase) == (None, Phase.IDLE)


async def test_a_reply_that_comes_before_its_caller_waits_is_kept() -> None:
    inbox = Inbox()
    inbox.send("reset")
    inbox.receive(b"1")
    assert inbox.owes == "reset"
    assert await inbox.reply(LONG) == b"1"


async def test_a_timeout_leaves_the_reply_owed() -> None:
    inbox = Inbox()
    inbox.send("step")
    with pytest.raises(ReplyTimeout, match="No reply to step within 0 s"):
        await inbox.reply(0)
    with pytest.raises(ReplyOwed, match="still owes the reply to an earlier step"):
        inbox.send("state")
    inbox.receive(b"late")
    assert await inbox.reply(LONG) == b"late"
    inbox.send("state")
    assert inbox.owes == "state"


async def test_a_caller_cancelled_just_as_the_reply_comes_does_not_take_it_along() -> None:
    inbox = Inbox()
    inbox.send("step")
    waiting = asyncio.create_task(inbox.reply(LONG))
    await asyncio.sleep(0)
    inbox.receive(b"1")
    await give_up(waiting)
    assert waiting.cancelled()
    assert inbox.owes == "step"
    assert await inbox.reply(LONG) == b"1"


async def test_two_callers_cannot_wait_for_one_reply() -> None:
    inbox = Inbox()
    inbox.send("step")
    waiting = asyncio.create_task(inbox.reply(LONG))
    await asyncio.sleep(0)
    with pytest.raises(RuntimeError, match="Two calls wait for one reply"):
        await inbox.reply(LONG)
    inbox.receive(b"1")
    assert await waiting == b"1"


async def test_there_is_nothing_to_wait_for_when_nothing_was_sent() -> None:
    with pytest.raises(RuntimeError, match="No reply is owed"):
        await Inbox().reply(LONG)


async def test_a_reply_that_is_here_when_the_connection_ends_can_still_be_taken() -> None:
    inbox = Inbox()
    inbox.send("step")
    inbox.receive(b"last")
    inbox.lose(partial(EpisodeLost, "cut"))
    await inbox.wait_over()
    assert await inbox.reply(LONG) == b"last"
    with pytest.raises(EpisodeLost, match="The episode is lost: cut"):
        inbox.send("step")


async def test_closing_tells_whoever_waits() -> None:
    inbox = Inbox()
    inbox.send("step")
    waiting = asyncio.create_task(inbox.reply(LONG))
    await asyncio.sleep(0)
    inbox.close()
    inbox.close()
    with pytest.raises(EpisodeLost, match="closed by this side"):
        await waiting
    assert inbox.owes is None


async def test_the_first_reason_for_the_end_stays_and_each_caller_gets_an_error_of_its_own() -> None:
    inbox = Inbox()
    inbox.refuse(partial(CapacityReached, "full", {"max_sessions": 1}))
    inbox.lose(partial(EpisodeLost, "closed with code 1000"))
    first, second = inbox.failure(), inbox.failure()
    assert isinstance(first, CapacityReached)
    assert first is not second


def test_the_reason_for_the_end_is_only_known_at_the_end() -> None:
    assert "not over" in str(Inbox().failure())


WAITS = st.lists(st.tuples(st.floats(0.01, 100), st.none() | st.floats(0, 200), st.floats(0, 100)), max_size=12)
"""For each wait of one session: its time-out, when its reply comes (None: too late), and how long nothing is asked after it."""


@given(WAITS)
def test_every_wait_of_a_session_ends_by_its_own_reply_or_at_its_own_time(
    waits: list[tuple[float, float | None, float]],
) -> None:
    async def play() -> None:
        loop, inbox = asyncio.get_running_loop(), Inbox()
        for number, (timeout_s, reply_s, pause_s) in enumerate(waits):
            inbox.send("step")
            since, reply = loop.time(), str(number).encode()
            timer = None if reply_s is None else loop.call_later(reply_s, inbox.receive, reply)
            late = reply_s is None or reply_s > timeout_s
            try:
                assert await inbox.reply(timeout_s) == reply
                assert reply_s is not None and loop.time() - since == pytest.approx(reply_s, abs=0.001)
            except ReplyTimeout:
                assert late and loop.time() - since == pytest.approx(timeout_s, abs=0.001)
                if timer is None:
                    inbox.receive(reply)
                assert await inbox.reply(1000) == reply
            await asyncio.sleep(pause_s)
        inbox.close()
        assert loop.time() <= sum(max(reply_s or 0, timeout_s) + pause_s for timeout_s, reply_s, pause_s in waits) + 0.1

    with asyncio.Runner(loop_factory=SkippingLoop) as runner:
        runner.run(play())


@pytest.mark.parametrize(
    "end", [Inbox.close, lambda inbox: inbox.lose(partial(EpisodeLost, "cut")), lambda inbox: inbox.receive(b"answers nothing")]
)
async def test_nothing_keeps_a_session_that_is_over_in_memory(end: Callable[[Inbox], None]) -> None:
    inbox = Inbox()
    inbox.send("step")
    asyncio.get_running_loop().call_soon(inbox.receive, b"1")
    assert await inbox.reply(3600) == b"1"
    end(inbox)
    assert inbox.phase in OVER
    gone = weakref.ref(inbox)
    del inbox
    gc.collect()
    assert gone() is None


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("call"), st.integers(0, 3)),
        st.tuples(st.just("collect"), st.integers(0, 3)),
        st.tuples(st.sampled_from(["cancel", "reply", "expire", "turn", "stray"]), st.just(0)),
        st.tuples(st.sampled_from(["gone", "close"]), st.just(0)),
    ),
    max_size=40,
)


@settings(max_examples=300, deadline=None)
@given(OPERATIONS)
def test_no_interleaving_gives_a_reply_to_another_request(operations: list[tuple[str, int]]) -> None:
    asyncio.run(_play(operations))


async def _play(operations: list[tuple[str, int]]) -> None:
    inbox, sent, on_the_wire = Inbox(), 0, 0
    callers: list[tuple[int, asyncio.Task[bytes]]] = []
    for operation, turns in operations:
        if operation == "call" and inbox.phase in (Phase.FRESH, Phase.IDLE):
            inbox.send("step")
            sent += 1
            callers.append((sent, asyncio.create_task(inbox.reply(LONG))))
        elif operation == "collect" and inbox.owes and all(task.done() for _, task in callers):
            callers.append((sent, asyncio.create_task(inbox.reply(LONG))))
        elif operation == "cancel" and callers:
            callers[-1][1].cancel()
        elif operation == "reply" and inbox.phase in WAITING:
            on_the_wire += 1
            inbox.receive(str(on_the_wire).encode())
        elif operation == "stray" and inbox.phase not in WAITING and inbox.phase is not Phase.LAST:
            inbox.receive(b"stray")
            assert inbox.phase in OVER
        elif operation == "gone" and inbox.phase is not Phase.LAST:
            inbox.lose(partial(EpisodeLost, "cut"))
        elif operation == "close":
            inbox.close()
        for _ in range(turns + (operation == "turn")):
            await asyncio.sleep(0)
    inbox.close()
    outcomes = await asyncio.gather(*(task for _, task in callers), return_exceptions=True)
    answered = [(number, reply) for (number, _), reply in zip(callers, outcomes, strict=True) if isinstance(reply, bytes)]
    assert all(reply == str(number).encode() for number, reply in answered)
    assert len({reply for _, reply in answered}) == len(answered)
    others = [outcome for outcome in outcomes if not isinstance(outcome, bytes)]
    assert all(isinstance(outcome, (asyncio.CancelledError, EpisodeLost)) for outcome in others), others
