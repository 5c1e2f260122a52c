"""threads.py: blocking calls beside a loop, work that outlives a cancellation, and a loop in a thread of its own."""

from __future__ import annotations

import asyncio
import threading

import pytest

from openenv_client.threads import LoopThread, finish, in_thread


async def test_in_thread_returns_and_raises_what_the_call_does() -> None:
    assert await in_thread(lambda: threading.current_thread() is threading.main_thread()) is False
    with pytest.raises(ZeroDivisionError):
        await in_thread(lambda: 1 // 0)


async def test_a_cancelled_in_thread_waits_for_the_calls_end() -> None:
    go_on, entered = threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def call() -> bool:
        loop.call_soon_threadsafe(entered.set)
        return go_on.wait(5)

    waiting = asyncio.ensure_future(in_thread(call))
    await entered.wait()
    waiting.cancel()
    await asyncio.sleep(0.01)
    assert not waiting.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_an_interrupt_may_bring_the_end_about_and_its_own_failure_changes_nothing() -> None:
    go_on, entered = threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def call() -> None:
        loop.call_soon_threadsafe(entered.set)
        go_on.wait(5)
        raise RuntimeError("stopped")

    def interrupt() -> None:
        go_on.set()
        raise OSError("twice is not fine")

    waiting = asyncio.ensure_future(in_thread(call, interrupt))
    await entered.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError) as cancelled:
        await waiting
    assert isinstance(cancelled.value.__cause__, RuntimeError)


async def test_finish_carries_work_through_a_cancellation_and_raises_it_afterwards() -> None:
    done: list[str] = []
    go_on = asyncio.Event()

    async def work() -> None:
        await go_on.wait()
        done.append("work")

    finishing = asyncio.ensure_future(finish(work()))
    for _ in range(3):
        await asyncio.sleep(0)
        finishing.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await finishing
    assert done == ["work"]


async def test_finish_returns_or_raises_what_the_work_does() -> None:
    async def fail() -> None:
        raise LookupError("no")

    assert await finish(asyncio.sleep(0, "result")) == "result"
    with pytest.raises(LookupError):
        await finish(fail())


def test_a_loop_thread_runs_work_ends_and_starts_again() -> None:
    thread = LoopThread()
    for _ in range(2):
        assert thread.loop is None
        assert thread.run(lambda: asyncio.sleep(0, 3)) == 3
        (loop,) = [thread.loop]
        assert loop is not None and loop.is_running()
        thread.stop()
        assert loop.is_closed()
    thread.stop()


def test_what_still_runs_on_a_stopped_loop_is_cancelled() -> None:
    thread, ended = LoopThread(), threading.Event()

    async def linger() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    async def begin() -> asyncio.Task[None]:
        task = asyncio.ensure_future(linger())
        await asyncio.sleep(0)
        return task

    task = thread.run(begin)
    thread.stop()
    assert ended.is_set() and task.cancelled()


def test_abandoning_a_loop_lets_it_do_its_last_work_and_end() -> None:
    thread, last = LoopThread(), threading.Event()
    thread.run(lambda: asyncio.sleep(0))
    runner = next(each for each in threading.enumerate() if each.name == "openenv-sync-client-loop")

    async def work() -> None:
        last.set()

    thread.abandon(work)
    assert last.wait(5)
    runner.join(5)
    assert not runner.is_alive()
