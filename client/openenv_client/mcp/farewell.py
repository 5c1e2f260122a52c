"""The last work of something that lives on an event loop: done when it is closed, or when the loop ends without that."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class Farewell:
    """Made on the loop. A program that ends its loop (`asyncio.run` does) cancels all tasks, this one too, and waits for what
    they still have to do: so a session is given back also by who never closed it."""

    def __init__(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._last = last
        self._has_begun = False
        self._task = asyncio.ensure_future(self._wait())

    async def say(self) -> None:
        """Do the last work now; twice is fine. A cancellation cancels that work as well, and is raised after its end."""
        cancelled: asyncio.CancelledError | None = None
        is_told = False
        while not self._task.done():
            if self._has_begun and not is_told:
                is_told = self._task.cancel()
            try:
                await asyncio.wait({self._task}, timeout=None if is_told else 0)
            except asyncio.CancelledError as error:
                cancelled = error
                if is_told:
                    self._task.cancel()
        if cancelled is not None:
            raise cancelled
        if not self._task.cancelled():
            self._task.result()

    async def _wait(self) -> None:
        self._has_begun = True
        try:
            await asyncio.Event().wait()
        finally:
            await self._last()
