"""Blocking work in a thread of its own.

Not the event loop's executor: that has a handful of threads, and a `stop` would wait in its queue behind the very waits for
readiness that it is to end.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

T = TypeVar("T")


def in_thread(work: Callable[[], T], name: str) -> asyncio.Future[T]:
    """Run `work` in a new daemon thread. The future has its result or exception; cancelling it does not end the thread."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(outcome: Callable[[], None]) -> None:
        if not future.done():
            outcome()

    def run() -> None:
        try:
            outcome = partial(future.set_result, work())
        except BaseException as error:  # noqa: BLE001  (handed over to whoever awaits the future)
            outcome = partial(future.set_exception, error)
        try:
            loop.call_soon_threadsafe(settle, outcome)
        except RuntimeError:
            return  # the loop has ended: nobody waits any more

    threading.Thread(target=run, name=name, daemon=True).start()
    return future
