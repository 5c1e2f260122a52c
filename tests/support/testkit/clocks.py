"""An event loop whose time passes at once: whoever waits for an hour is woken without waiting, and at the right moment."""

from __future__ import annotations

import asyncio
import selectors


class _Skipping(selectors.SelectSelector):
    """Instead of waiting for a timer it moves the clock on."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0 if timeout is not None else None)
        if not ready and timeout:
            self.now += timeout
        return ready


class SkippingLoop(asyncio.SelectorEventLoop):
    """For `asyncio.Runner(loop_factory=SkippingLoop)`: everything as ever, but for the time, which starts at 0."""

    def __init__(self) -> None:
        self._skipping = _Skipping()
        super().__init__(self._skipping)

    def time(self) -> float:
        return self._skipping.now
