"""First come, first served, with a deadline."""

from __future__ import annotations

import asyncio

import pytest

from openenv_gateway.pool.line import Line, Overdue


def never() -> bool:
    return False


async def test_places_go_to_the_first_who_still_waits() -> None:
    line: Line[str] = Line(60, 60)
    first, second, third = (line.ticket() for _ in range(3))
    for waiter in (third, first, second):
        line.join(waiter)
    first.place.cancel()
    assert line.serve("a") and line.serve("b")
    assert (await line.wait(second, never), await line.wait(third, never)) == ("a", "b")
    assert line.serve("c") is False


async def test_who_was_refused_keeps_the_place_in_the_line() -> None:
    line: Line[str] = Line(60, 60)
    refused, other = line.ticket(), line.ticket()
    line.join(refused)
    line.serve("full")
    assert await line.wait(refused, never) == "full"
    line.join(other)
    line.join(refused)
    line.serve("free")
    assert await line.wait(refused, never) == "free"


async def test_the_time_is_over_after_queue_s_of_waiting() -> None:
    line: Line[str] = Line(0.01, 60)
    waiter = line.ticket()
    line.join(waiter)
    with pytest.raises(Overdue):
        await line.wait(waiter, never)
    assert line.leave(waiter) is None
    assert len(line) == 0


async def test_time_in_which_a_server_starts_does_not_count_but_has_an_end() -> None:
    line: Line[str] = Line(0.01, 0.0)
    waiter = line.ticket()
    waiter.left = 60
    line.join(waiter)
    with pytest.raises(Overdue):
        await line.wait(waiter, lambda: True)
    assert waiter.left == 60


async def test_a_place_given_in_the_moment_of_leaving_is_handed_back() -> None:
    line: Line[str] = Line(60, 60)
    waiter = line.ticket()
    line.join(waiter)
    line.serve("place")
    assert line.leave(waiter) == "place"


async def test_everybody_is_told_when_there_will_be_no_place() -> None:
    line: Line[str] = Line(60, 60)
    waiters = [line.ticket() for _ in range(3)]
    for waiter in waiters:
        line.join(waiter)
    line.fail(RuntimeError("closed"))
    outcomes = await asyncio.gather(*[line.wait(waiter, never) for waiter in waiters], return_exceptions=True)
    assert [str(outcome) for outcome in outcomes] == ["closed"] * 3
    assert [line.leave(waiter) for waiter in waiters] == [None] * 3
