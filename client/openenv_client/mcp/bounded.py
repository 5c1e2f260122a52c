"""Waits that end: by the work's end, after some seconds, or by a cancellation, which then is the work's end too."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from openenv_client.threads import finish

T = TypeVar("T")


class Overdue(Exception):
    """The time was over before the work was done. (No TimeoutError: there are two classes of that name on Python 3.10.)"""


async def within(work: Coroutine[Any, Any, T], timeout_s: float) -> T:
    """What the work returns or raises. Overdue after `timeout_s` seconds: it has been cancelled and has ended then, as it has
    after a cancellation of the caller."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=timeout_s)
    finally:
        if not task.done():
            await finish(ended(task))
    if task.cancelled():
        raise Overdue
    return task.result()


async def ended(task: asyncio.Task[Any]) -> None:
    """Cancel the task and wait for its end; what it raises is dropped."""
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()  # looked at, so that nothing complains that nobody did
