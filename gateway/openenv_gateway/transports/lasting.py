"""Which calls last: one timer for all of them. Nearly every call is answered before it would be looked at."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

Attend = Callable[[], None]


class LastingCalls:
    """Calls that last longer than `after_s` are attended, once each. Belongs to one event loop."""

    def __init__(self, after_s: float) -> None:
        self._after_s = after_s
        self._due: dict[Attend, float] = {}
        """When each call will have lasted so long; in that order, since they began in that order."""
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The running event loop, asked for once: Python asks the system for the process's id each time."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return self._loop

    def begin(self, attend: Attend) -> None:
        """A call begins: `attend` is called when it lasts. Each call has one of its own."""
        due = self._due[attend] = self.loop.time() + self._after_s
        if self._timer is None:
            self._timer = self.loop.call_at(due, self._look)

    def end(self, attend: Attend) -> None:
        """The call has ended; it may have been attended already."""
        self._due.pop(attend, None)

    def _look(self) -> None:
        now = self.loop.time()
        self._timer = None
        for attend, due in tuple(self._due.items()):
            if due > now:
                self._timer = self.loop.call_at(due, self._look)
                return
            del self._due[attend]
            attend()
