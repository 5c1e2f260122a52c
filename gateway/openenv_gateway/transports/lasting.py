"""Which calls last: one timer for all of them. Nearly every call is answered before it would be looked at."""

from __future__ import annotations

import asyncio
from typing import Protocol


class Lasting(Protocol):
    """Something that may last."""

    def attend(self) -> None:
        """It has lasted for a while."""
        ...


class LastingCalls:
    """Calls that last longer than `after_s` are attended, once each. Belongs to one event loop."""

    def __init__(self, after_s: float) -> None:
        self._after_s = after_s
        self._due: dict[Lasting, float] = {}
        """When each call will have lasted so long; in that order, since they began in that order."""
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The running event loop, asked for once: Python asks the system for the process's id each time."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return self._loop

    def begin(self, call: Lasting) -> None:
        """A call begins; its `attend` is called when it lasts."""
        due = self._due[call] = self.loop.time() + self._after_s
        if self._timer is None:
            self._timer = self.loop.call_at(due, self._look)

    def end(self, call: Lasting) -> None:
        """The call has ended; it may have been attended already."""
        self._due.pop(call, None)

    def forget(self, call: Lasting) -> bool:
        """Never attend the call. Returns whether it has begun, has not ended, and was not attended yet."""
        return self._due.pop(call, None) is not None

    def _look(self) -> None:
        now = self.loop.time()
        self._timer = None
        for call, due in tuple(self._due.items()):
            if due > now:
                self._timer = self.loop.call_at(due, self._look)
                return
            del self._due[call]
            call.attend()
