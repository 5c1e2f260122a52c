"""transports/lasting.py: one timer tells which calls last."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from openenv_gateway.transports.lasting import LastingCalls

LONG = 5.0


class Call:
    """A call that tells when it is attended."""

    def __init__(self, attended: Callable[[], None]) -> None:
        self.attend = attended


async def test_calls_that_last_are_attended_once_each_in_their_order_and_those_that_ended_never() -> None:
    lasting, attended = LastingCalls(0.02), asyncio.Queue[str]()

    def call(name: str) -> Call:
        return Call(lambda: attended.put_nowait(name))

    calls = {name: call(name) for name in ("first", "quick", "second")}
    for one in calls.values():
        lasting.begin(one)
    lasting.end(calls["quick"])
    assert [await asyncio.wait_for(attended.get(), LONG) for _ in range(2)] == ["first", "second"]
    lasting.end(calls["first"])
    lasting.end(calls["second"])
    lasting.begin(calls["quick"])  # the timer starts again
    assert await asyncio.wait_for(attended.get(), LONG) == "quick"
    assert attended.empty()


async def test_a_call_that_begins_later_is_attended_later() -> None:
    lasting, attended = LastingCalls(0.05), asyncio.Queue[float]()
    loop = asyncio.get_running_loop()
    began: list[float] = []
    lasting.begin(Call(lambda: attended.put_nowait(loop.time() - began[0])))

    def begin_second() -> None:
        began.append(loop.time())
        lasting.begin(Call(lambda: attended.put_nowait(loop.time() - began[1])))

    began.append(loop.time())
    loop.call_later(0.03, begin_second)
    for _ in range(2):
        assert await asyncio.wait_for(attended.get(), LONG) >= 0.045


async def test_a_call_that_is_forgotten_is_never_attended_and_is_forgotten_once() -> None:
    lasting, attended = LastingCalls(0.01), asyncio.Queue[str]()
    gone, stays = Call(lambda: attended.put_nowait("gone")), Call(lambda: attended.put_nowait("stays"))
    lasting.begin(gone)
    lasting.begin(stays)
    assert lasting.forget(gone) and not lasting.forget(gone)
    assert await asyncio.wait_for(attended.get(), LONG) == "stays"
    assert not lasting.forget(stays)
    assert attended.empty()
