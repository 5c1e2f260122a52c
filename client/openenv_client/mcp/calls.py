"""One call at a time, and what becomes of those that were given up.

An answer belongs to its HTTP request, so none is ever taken for another's. With `late_reply_s` an acting call that timed out or
was cancelled goes on in the background, and the next call waits for it that long first. Without, the session is over: its
episode may have gone on without anybody who knows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, Literal, TypeVar

from openenv_client.errors import EpisodeLost, LateReply, OpenEnvError, ReplyTimeout
from openenv_client.frames import JsonObject
from openenv_client.mcp.bounded import ended
from openenv_client.threads import finish

T = TypeVar("T")
Kind = Literal["reset", "step", "state", "tools/list"]

CLOSED: Final = "the client was closed meanwhile"
_ACTS: Final = ("reset", "step")


class Calls:
    """The calls of one session. `over` says why no other can be made, None while some can; `late` is an earlier action's
    outcome that nobody has been told."""

    def __init__(self, late_reply_s: float | None) -> None:
        self.over: str | None = None
        self.late: LateReply | None = None
        self._late_reply_s = late_reply_s
        self._running: set[asyncio.Task[Any]] = set()
        self._owed: tuple[Kind, asyncio.Task[JsonObject]] | None = None

    async def settle(self) -> None:
        """To be called first by every call: waits for the one that goes on in the background, if there is one, and keeps its
        outcome. Raises EpisodeLost."""
        if self.over is not None:
            raise EpisodeLost(self.over)
        if self._owed is None:
            return
        kind, task = self._owed
        patience_s = self._late_reply_s or 0.0
        await asyncio.wait({task}, timeout=patience_s)
        self._owed = None
        if not task.done():
            self.over = f"the reply to an earlier {kind} did not come, and not within another {patience_s:g} s either"
            await finish(ended(task))
            raise EpisodeLost(self.over)
        self.late = self._late_outcome(kind, task)

    def tell_late(self) -> None:
        """To be called by whatever acts: raises the LateReply that nobody has been told."""
        late, self.late = self.late, None
        if late is not None:
            raise late

    async def run(self, kind: Kind, work: Coroutine[Any, Any, T], timeout_s: float) -> T:
        """What the work returns or raises. Raises ReplyTimeout, and EpisodeLost if `stop` came first."""
        task = asyncio.ensure_future(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        try:
            await asyncio.wait({task}, timeout=timeout_s)
        except asyncio.CancelledError:
            await finish(self._give_up(kind, task, f"{kind} was cancelled after it was sent"))
            raise
        if not task.done():
            await finish(self._give_up(kind, task, f"{kind} was sent and not answered within {timeout_s:g} s"))
            raise ReplyTimeout(kind, timeout_s)
        return self._outcome(kind, task)

    async def stop(self) -> None:
        """End what runs, and take no other call."""
        self.over = self.over or CLOSED
        for task in tuple(self._running):
            await finish(ended(task))

    async def _give_up(self, kind: Kind, task: asyncio.Task[Any], why: str) -> None:
        if kind in _ACTS and self._late_reply_s is not None:
            self._owed = (kind, task)
            return
        if kind in _ACTS:
            self.over = self.over or f"{why}, so that its outcome is unknown"
        await ended(task)

    def _outcome(self, kind: Kind, task: asyncio.Task[T]) -> T:
        if task.cancelled():
            raise EpisodeLost(self.over or CLOSED)
        try:
            return task.result()
        except EpisodeLost as lost:
            self.over = lost.reason
            raise
        except ReplyTimeout:  # the gateway's own: it waited for the environment
            if kind in _ACTS and self._late_reply_s is None:
                self.over = f"{kind} was not answered by the environment in time, so that its outcome is unknown"
            raise

    def _late_outcome(self, kind: Kind, task: asyncio.Task[JsonObject]) -> LateReply:
        try:
            return LateReply(kind, self._outcome(kind, task))
        except EpisodeLost:
            raise
        except LateReply as earlier:
            return earlier
        except OpenEnvError as error:
            late = LateReply(kind, None)
            late.__cause__ = error
            return late
