"""A client's one wire at a time: opened when needed, replaced when it is over, never behind the back of an episode.

A wire is over when the far end is gone, after a timeout, or when the client is used on another event loop. Where no episode was
played on it, the next call opens another. Where one was, that episode is lost: every call raises EpisodeLost until `reset`
(or until the user closes, which is a new beginning that somebody asked for).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from openenv_client.errors import CapacityReached, EpisodeLost, OpenEnvError, ReplyTimeout, SessionRefused
from openenv_client.frames import JsonObject
from openenv_client.threads import finish
from openenv_client.wire import Wire

logger = logging.getLogger(__name__)

T = TypeVar("T")
_PAUSE_S = 0.1
_ELSEWHERE = "it was played on another event loop, where its connection stays behind"
_CLOSED = "the client was closed meanwhile"


class AsyncioTimeout(ReplyTimeout, asyncio.TimeoutError):
    """A ReplyTimeout on Python 3.10, where what asyncio calls a timeout is a class of its own, and user code catches either."""


class Link:
    """Belongs to one client. Calls take turns; `close` may come at any moment."""

    def __init__(self, open_wire: Callable[[], Coroutine[Any, Any, Wire]]) -> None:
        """`open_wire` connects; what it raises, `connect` and the calls raise."""
        self._open_wire = open_wire
        self._loop: asyncio.AbstractEventLoop | None = None
        self._turn = asyncio.Lock()
        self._wire: Wire | None = None
        self._opening: asyncio.Task[Wire] | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self._in_play = False
        self._lost: str | None = None
        self._left_running = False
        self._closes = 0

    def __repr__(self) -> str:
        return f"<Link {'lost' if self._lost else self._wire or 'not connected'}>"

    async def connect(self) -> None:
        """Have a wire that is open on this loop. An episode that was lost stays lost."""
        async with self.turn():
            await self._ready()

    async def call(self, call: Callable[[Wire], Awaitable[T]], *, acts: bool) -> T:
        """One call; `acts` tells whether it may change the environment. Raises EpisodeLost without sending anything, or as the
        call does, or as connecting does."""
        async with self.turn():
            if self._lost is not None:
                raise EpisodeLost(self._lost)
            wire = await self._ready()
            self._in_play = self._in_play or acts
            return await self._watched(wire, call)

    async def reset(self, call: Callable[[Wire], Awaitable[JsonObject]], patience_s: float) -> JsonObject:
        """A call that starts an episode, on another wire if the one at hand is over.

        A server that still runs what a lost episode left behind may have no free session until that ends: it is asked again for
        `patience_s` seconds.
        """
        async with self.turn():
            deadline, closes = time.monotonic() + patience_s, self._closes
            while True:
                try:
                    payload = await self._reset_once(call)
                except CapacityReached:
                    if not self._left_running or time.monotonic() + _PAUSE_S > deadline:
                        raise
                    await asyncio.sleep(_PAUSE_S)
                    self._check_not_closed(closes)
                else:
                    self._lost, self._left_running = None, False
                    return payload

    async def close(self) -> None:
        """End the wire, one that is being opened too, and wait until all are closed. What was lost is forgotten; calls that
        wait, for an answer or for their turn, raise EpisodeLost."""
        self._move_to_this_loop()
        self._closes += 1
        opening = self._opening
        if opening is not None:
            opening.cancel()
        self._let_go()
        self._lost = None
        await finish(self._drain(opening))

    async def _reset_once(self, call: Callable[[Wire], Awaitable[JsonObject]]) -> JsonObject:
        """A wire that turns out to be over gets a successor, once: a reset may be sent again, since it goes to an environment
        of its own."""
        old, closes = self._wire, self._closes
        wire = await self._ready(may_begin=True)
        self._in_play = True
        try:
            return await self._watched(wire, call)
        except EpisodeLost:
            if wire is not old or self._closes != closes:
                raise
        wire = await self._ready(may_begin=True)
        self._in_play = True
        return await self._watched(wire, call)

    async def _ready(self, *, may_begin: bool = False) -> Wire:
        """The wire, opened if there is none. One that is over is kept while an episode is on it: its next call says why."""
        if self._wire is not None and self._wire.is_over and (may_begin or not self._in_play):
            self._let_go()
        if self._wire is None:
            await self._drain()  # a server with one session gives it to us again only when the old one is closed
            self._wire = await self._opened()
        return self._wire

    async def _opened(self) -> Wire:
        opening, closes = asyncio.ensure_future(self._open_wire()), self._closes
        self._opening = opening
        try:
            wire = await opening
        except asyncio.CancelledError:
            if opening.cancelled():
                self._check_not_closed(closes)
            if not opening.cancelled() and opening.done() and opening.exception() is None:
                self._close_later(opening.result())  # it was open already when the cancellation came
                await finish(self._drain())
            raise
        finally:
            self._opening = None
        if self._closes != closes:
            self._close_later(wire)  # it opened in the moment in which the user closed
        self._check_not_closed(closes)
        return wire

    async def _watched(self, wire: Wire, call: Callable[[Wire], Awaitable[T]]) -> T:
        try:
            return await call(wire)
        except SessionRefused:
            self._let_go(wire)
            raise
        except (ReplyTimeout, asyncio.CancelledError) as error:
            if wire.is_over:
                self._left_running = True
                self._lose(wire, f"{_given_up(error)}, so that its outcome is unknown")
            if isinstance(error, ReplyTimeout) and not isinstance(error, asyncio.TimeoutError):
                raise AsyncioTimeout(error.what, error.seconds) from error
            raise
        except EpisodeLost as error:
            self._lose(wire, error.reason)
            raise
        except OpenEnvError:
            if wire.is_over:
                self._lose(wire, "the connection ended with an answer that is none")
            raise

    def _lose(self, wire: Wire, reason: str) -> None:
        if self._wire is not wire:
            return  # closed by the user meanwhile
        if self._in_play:
            self._lost = reason
        self._let_go(wire)

    def _let_go(self, wire: Wire | None = None) -> None:
        """Close the wire in the background; whoever opens or closes next waits for that."""
        old = self._wire
        if old is None or wire not in (None, old):
            return
        self._wire, self._in_play = None, False
        self._close_later(old)

    def _close_later(self, wire: Wire) -> None:
        task = asyncio.ensure_future(wire.close())
        self._closing.add(task)
        task.add_done_callback(self._closed)

    def _closed(self, task: asyncio.Task[None]) -> None:
        self._closing.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.warning("closing a connection failed: %s", error)

    async def _drain(self, *others: asyncio.Task[Wire] | None) -> None:
        """Wait for the end of what is being closed, and of the others."""
        ending = {other for other in others if other is not None}
        while ending or self._closing:
            await asyncio.wait({*ending, *self._closing})
            ending = {other for other in ending if not other.done()}

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """One at a time. Calls that a close overtook raise EpisodeLost: they were meant for what it ended."""
        self._move_to_this_loop()
        closes = self._closes
        async with self._turn:
            self._check_not_closed(closes)
            yield

    def _check_not_closed(self, closes: int) -> None:
        if self._closes != closes:
            raise EpisodeLost(_CLOSED)

    def _move_to_this_loop(self) -> None:
        """Leave behind what belongs to another loop. A loop that still runs, in another thread, closes its own things."""
        loop = asyncio.get_running_loop()
        before, self._loop = self._loop, loop
        if before is None or before is loop:
            return
        wire, self._wire = self._wire, None
        if wire is not None and self._in_play:
            self._lost, self._in_play = _ELSEWHERE, False
        self._turn, self._opening, self._closing = asyncio.Lock(), None, set()
        if wire is not None and before.is_running():
            asyncio.run_coroutine_threadsafe(wire.close(), before)


def _given_up(error: BaseException) -> str:
    if isinstance(error, ReplyTimeout):
        return f"{error.what} was sent and not answered within {error.seconds:g} s"
    return "a call was cancelled after it was sent"
