"""Between threads and event loops: blocking calls that never hold a loop up, work that outlives a cancellation, and an event
loop in a thread of its own."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

logger = logging.getLogger(__name__)

T = TypeVar("T")
_STOP_TIMEOUT_S = 5.0


async def finish(work: Coroutine[Any, Any, T]) -> T:
    """Carry the work through, also when the caller is cancelled meanwhile: that is raised afterwards.

    Without a cancellation, returns or raises what the work does.
    """
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled from (None if task.cancelled() else task.exception())
    return task.result()


async def in_thread(call: Callable[[], T], interrupt: Callable[[], object] | None = None) -> T:
    """Run a blocking call in a thread of its own and return or raise what it does.

    A cancellation waits for the call's end, because nobody could clean up behind a call that still runs; `interrupt`, run in a
    thread too, may bring that end about. Its result is then dropped.
    """
    ended = _started(call)
    waiting: set[asyncio.Future[Any]] = {ended}
    cancelled: asyncio.CancelledError | None = None
    while not all(future.done() for future in waiting):
        try:
            await asyncio.wait(waiting)
        except asyncio.CancelledError as error:
            if cancelled is None and interrupt is not None:
                interrupted = _started(interrupt)
                interrupted.add_done_callback(_log_failure)
                waiting.add(interrupted)
            cancelled = error
    if cancelled is not None:
        raise cancelled from ended.exception()
    return ended.result()


def _started(call: Callable[[], T]) -> asyncio.Future[T]:
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[T] = loop.create_future()

    def run() -> None:
        try:
            deliver = _delivery(ended, call(), None)
        except BaseException as error:  # noqa: BLE001  (whatever it is, the waiting coroutine raises it)
            deliver = _delivery(ended, None, error)
        with suppress(RuntimeError):  # the loop was closed, so nobody waits any more
            loop.call_soon_threadsafe(deliver)

    threading.Thread(target=run, name=f"openenv {getattr(call, '__qualname__', call)}", daemon=True).start()
    return ended


def _delivery(ended: asyncio.Future[T], result: Any, error: BaseException | None) -> Callable[[], None]:
    def deliver() -> None:
        if ended.done():
            return
        if error is None:
            ended.set_result(result)
        else:
            ended.set_exception(error)

    return deliver


def _log_failure(ended: asyncio.Future[Any]) -> None:
    if not ended.cancelled() and (error := ended.exception()) is not None:
        logger.warning("interrupting a provider failed: %s", error)


class LoopThread:
    """An event loop in a daemon thread, started by the first call and again after `stop`. For any thread but its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The loop while the thread runs."""
        return self._loop

    def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run the work on the loop and block until its end. Interrupted (Ctrl-C), it is cancelled.

        Raises RuntimeError when called on the loop's own thread, which would wait for itself.
        """
        if threading.current_thread() is self._thread:
            raise RuntimeError("A blocking call on the event loop that has to carry it out: await the async client instead")
        future = asyncio.run_coroutine_threadsafe(_call(work), self._started())
        try:
            return future.result()
        except BaseException:
            future.cancel()  # no-op unless the wait itself was interrupted
            raise

    def stop(self) -> None:
        """Cancel what still runs, end the loop and its thread. Twice is fine."""
        thread = self._end()
        if thread is not None and thread is not threading.current_thread():
            thread.join(_STOP_TIMEOUT_S)

    def abandon(self, last: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Let the thread do the last work and then end, without waiting for it: for finalizers, which any thread may run."""
        loop = self._loop
        if loop is None or loop.is_closed():
            return

        async def leave() -> None:
            try:
                await last()
            finally:
                self._end()

        with suppress(RuntimeError):  # it was closed in this moment
            loop.call_soon_threadsafe(lambda: _kept(loop.create_task(leave())))

    def _end(self) -> threading.Thread | None:
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is not None:
            with suppress(RuntimeError):  # closed already
                loop.call_soon_threadsafe(loop.stop)
        return thread

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                arguments = (self._loop,)
                self._thread = threading.Thread(target=_serve, args=arguments, name="openenv-sync-client-loop", daemon=True)
                self._thread.start()
            return self._loop


async def _call(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    return await work()


_last_tasks: set[asyncio.Task[None]] = set()


def _kept(task: asyncio.Task[None]) -> None:
    """A loop only holds weak references to its tasks."""
    _last_tasks.add(task)
    task.add_done_callback(_last_tasks.discard)


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        if tasks:
            loop.run_until_complete(asyncio.wait(tasks, timeout=_STOP_TIMEOUT_S))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        asyncio.set_event_loop(None)
        loop.close()
