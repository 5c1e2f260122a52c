"""What is going on while an environment server starts, for those who wait: pulling an image or a project can take minutes."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TextIO

from openenv_client.providers.base import Watchable

EVERY_S = 1.0
_WIDTH = 100


@dataclass(frozen=True)
class Progress:
    """One report. `stage` is "starting", "waiting until it answers" or "ready", `elapsed_s` the seconds since the start,
    `detail` the last line that the server printed, where its provider tells."""

    what: str
    stage: str
    elapsed_s: float
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.what}: {self.stage}, {self.elapsed_s:.0f} s" + (f" ({self.detail})" if self.detail else "")


Report = Callable[[Progress], object]
"""Called on the event loop, at each stage and then every second; when it raises, the start has failed."""


class Reporter:
    """Reports while its block runs: `stage` is what it says. Without a callback, to the terminal of an interactive program."""

    def __init__(self, report: Report | None, provider: object) -> None:
        self._report = report or terminal_line(sys.stderr)
        self._provider = provider
        self._stage = "starting"
        self._began = time.monotonic()
        self._task: asyncio.Task[None] | None = None

    def stage(self, stage: str) -> None:
        """Enter a stage, and say so."""
        self._stage = stage
        self._say()

    async def __aenter__(self) -> Reporter:
        self._say()
        self._task = asyncio.create_task(self._go_on(), name="progress of a start")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait({self._task})  # and not the task itself: a cancellation that comes here is not to be swallowed
        if not self._task.cancelled() and (failed := self._task.exception()) is not None and error is None:
            raise failed
        if error is None:
            self.stage("ready")

    async def _go_on(self) -> None:
        while True:
            await asyncio.sleep(EVERY_S)
            self._say()

    def _say(self) -> None:
        if self._report is not None:
            what = type(self._provider).__name__
            self._report(Progress(what, self._stage, time.monotonic() - self._began, _last_line(self._provider)))


def terminal_line(stream: TextIO) -> Report | None:
    """Rewrites one line of the stream, from the second report on; None where nobody sits before it."""
    if not (stream.isatty() or hasattr(sys, "ps1")):
        return None

    def report(progress: Progress) -> None:
        if progress.stage == "ready":
            stream.write("\r\x1b[K")
        elif progress.elapsed_s >= EVERY_S:
            stream.write(f"\r\x1b[K{str(progress)[:_WIDTH]}")
        stream.flush()

    return report


def _last_line(provider: Any) -> str:
    return provider.logs(1).strip() if isinstance(provider, Watchable) else ""
