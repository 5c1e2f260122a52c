from __future__ import annotations

import asyncio

import pytest

from openenv_client.mcp.farewell import Farewell


class Work:
    """The last work of a test; it can be made to wait."""

    def __init__(self) -> None:
        self.begun = self.done = 0
        self.entered = asyncio.Event()
        self.may_end = asyncio.Event()
        self.may_end.set()

    async def __call__(self) -> None:
        self.begun += 1
        self.entered.set()
        await self.may_end.wait()
        self.done += 1


async def test_the_work_is_done_once_also_when_nothing_else_ran_before() -> None:
    work = Work()
    farewell = Farewell(work)
    await farewell.say()
    await farewell.say()
    assert (work.begun, work.done) == (1, 1)


async def test_a_cancellation_ends_the_work_and_is_raised() -> None:
    work = Work()
    work.may_end.clear()
    saying = asyncio.ensure_future(Farewell(work).say())
    await asyncio.wait_for(work.entered.wait(), 5)
    saying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await saying
    assert (work.begun, work.done) == (1, 0)


async def test_a_cancellation_at_once_does_not_keep_the_work_from_being_done() -> None:
    work = Work()
    saying = asyncio.ensure_future(Farewell(work).say())
    await asyncio.sleep(0)
    saying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await saying
    assert work.begun == 1


def test_the_work_is_done_when_a_program_ends_its_loop() -> None:
    done: list[str] = []

    async def last() -> None:
        await asyncio.sleep(0)
        done.append("done")

    async def program() -> None:
        Farewell(last)
        await asyncio.sleep(0)

    asyncio.run(program())
    assert done == ["done"]


async def test_what_the_work_raises_is_raised() -> None:
    async def fails() -> None:
        raise ConnectionError("no")

    with pytest.raises(ConnectionError, match="no"):
        await Farewell(fails).say()
