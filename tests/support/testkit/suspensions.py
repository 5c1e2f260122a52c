"""Cancellation at every await point: a task is cancelled when it, or any task that it made, suspends for the n-th time.

    async for injected in every_await_point(make):       # make() -> coroutine; called anew for each point
        ... what was left behind? ...
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from typing import Any

LIMIT = 400
TIMEOUT_S = 10.0


async def every_await_point(
    make: Callable[[], Coroutine[Any, Any, object]], instead: Callable[[], Coroutine[Any, Any, object]] | None = None
) -> AsyncIterator[int]:
    """Runs the coroutine once for each of its await points and cancels it there; yields the number of the point after each.

    `instead` of being cancelled, it can be met there by another coroutine, which is then waited for as well; it may fail with a
    RuntimeError or a ConnectionError. Ends when a run came to its end before the point was reached. AssertionError if a
    cancellation was swallowed, or if there is no end.
    """
    for point in range(1, LIMIT):
        if not await _cancelled_at(point, make, instead):
            return
        yield point
    raise AssertionError(f"more than {LIMIT} await points")


async def _cancelled_at(
    point: int,
    make: Callable[[], Coroutine[Any, Any, object]],
    instead: Callable[[], Coroutine[Any, Any, object]] | None,
) -> bool:
    loop = asyncio.get_running_loop()
    count = 0
    delivered = False
    met: list[asyncio.Task[object]] = []

    def suspended() -> None:
        nonlocal count
        count += 1
        if count == point:
            loop.call_soon(cancel)

    def cancel() -> None:
        nonlocal delivered
        if instead is None:
            delivered = task.cancel()  # False: it had ended by itself, and what suspended is a task that stays
        elif not task.done():
            delivered = True
            met.append(asyncio.Task(instead(), loop=loop))

    def factory(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:
        return asyncio.Task(_counted(work, suspended), loop=loop, **options)

    loop.set_task_factory(factory)
    try:
        task = loop.create_task(make())
        await asyncio.wait({task}, timeout=TIMEOUT_S)
        for other in met:
            await asyncio.wait_for(other, TIMEOUT_S)
    finally:
        loop.set_task_factory(None)
    assert task.done(), f"cancelled at its {point}th await point, it goes on for more than {TIMEOUT_S:g} s"
    if not delivered:
        task.result()
        return False
    if instead is not None:
        assert isinstance(task.exception(), (RuntimeError, ConnectionError, type(None))), task
        return True
    assert task.cancelled(), f"the cancellation at the {point}th await point was swallowed: {task!r}"
    return True


@types.coroutine
def _counted(work: Coroutine[Any, Any, Any], suspended: Callable[[], None]) -> Generator[Any, Any, Any]:
    resume, value = work.send, None
    while True:
        try:
            waited_for = resume(value)
        except StopIteration as end:
            return end.value
        suspended()
        try:
            value = yield waited_for
            resume = work.send
        except BaseException as error:  # noqa: BLE001  (passed on to the work)
            value, resume = error, work.throw
