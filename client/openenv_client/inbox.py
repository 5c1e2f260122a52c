"""Where the reply to the one request in flight waits for its caller. No I/O: the wire's side calls it, the callers wait on it.

The wire has no correlation ids, so a reply belongs to the oldest request without one, and there is never more than one. A
caller that gives up, by timeout or cancellation at any moment, leaves its request *owed*: the next request is refused with
ReplyOwed until the reply was collected, so a late reply can never answer another call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from openenv_client.errors import EpisodeLost, OpenEnvError, ReplyOwed, ReplyTimeout
from openenv_client.frames import Kind
from openenv_client.lifecycle import OVER, OWING, WAITING, Event, Phase, advance

Failure = Callable[[], OpenEnvError]
"""Makes the error of a session that is over: a new one for each caller, so that their tracebacks stay apart."""


class Inbox:
    """One session's phase and its one reply. Belongs to one event loop."""

    def __init__(self, phase: Phase = Phase.FRESH) -> None:
        self._phase = phase
        self._loop: asyncio.AbstractEventLoop | None = None
        self._kind: Kind | None = None
        self._reply: bytes | None = None
        self._failure: Failure = _never_failed
        self._waiter: asyncio.Future[None] | None = None
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due = 0.0
        self._over = asyncio.Event()

    @property
    def phase(self) -> Phase:
        """Where the session stands."""
        return self._phase

    @property
    def owes(self) -> Kind | None:
        """The kind of the request that has no answer that somebody took, also while its caller still waits."""
        return self._kind if self._phase in OWING else None

    def failure(self) -> OpenEnvError:
        """Why the session is over. Only in the phases that are OVER."""
        return self._failure()

    def check(self) -> None:
        """Raise unless a request may be sent now: ReplyOwed, or the error with which the session ended."""
        if self._kind is not None and self._phase in OWING:
            raise ReplyOwed(self._kind)
        if self._phase in OVER:
            raise self._failure()

    def send(self, kind: Kind) -> None:
        """Note that a request is being handed to the wire: from here on its reply is owed. Raises as `check` does."""
        self.check()
        self._move(Event.SEND)
        self._kind = kind

    def receive(self, frame: bytes) -> None:
        """A frame came: the reply, if one is due; otherwise the session ends, because replies can no longer be matched."""
        if self._phase in WAITING:
            self._reply = frame
            self._move(Event.REPLY)
        else:
            self._end(Event.REPLY, partial(EpisodeLost, "the server sent a frame that answers no request"))

    def refuse(self, refusal: Failure) -> None:
        """The server gave no session."""
        self._end(Event.REFUSAL, refusal)

    def lose(self, failure: Failure) -> None:
        """The connection ended, or is of no use any more. A reply that is here already can still be taken."""
        self._end(Event.GONE, failure)

    def close(self) -> None:
        """This side closes: who waits for a reply is told at once. May be called again."""
        self._end(Event.CLOSE, partial(EpisodeLost, "the session was closed by this side"))

    async def reply(self, timeout_s: float) -> bytes:
        """Wait for the owed reply and take it.

        Raises ReplyTimeout (it stays owed), or the error with which the session ended. Cancelled, it leaves the reply owed.
        """
        if self._waiter is not None:
            raise RuntimeError("Two calls wait for one reply: collect an owed reply only after its own call has ended")
        if self._phase in WAITING:
            self._waiter = self._started_waiter(timeout_s)
            try:
                await self._waiter
            finally:
                self._waiter = None
        return self._take(timeout_s)

    async def wait_over(self) -> None:
        """Return when nothing will ever come any more: refused, lost or closed (a last reply may still be here)."""
        await self._over.wait()

    def _started_waiter(self, timeout_s: float) -> asyncio.Future[None]:
        """Set when the reply is here, nothing can come any more, or the time is over."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()  # once: Python asks the system for the process's id each time
        loop = self._loop
        self._due = loop.time() + timeout_s
        # Nearly every reply comes in time, so the timer of an earlier wait is left running as long as it is not too late for
        # this one: it looks then who waits.
        if self._timer is None or self._timer_due > self._due:
            self._start_timer(loop)
        return loop.create_future()

    def _start_timer(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_due = self._due
        self._timer = loop.call_at(self._due, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        if self._waiter is None:
            return
        if loop.time() < self._due:
            self._start_timer(loop)
        else:
            _wake(self._waiter)

    def _take(self, timeout_s: float) -> bytes:
        if self._reply is not None and self._phase in OWING:
            reply, self._reply = self._reply, None
            self._move(Event.TAKE)
            return reply
        if self._phase in WAITING:
            raise ReplyTimeout(self._kind or "a request", timeout_s)
        if self._phase in OVER:
            raise self._failure()
        raise RuntimeError("No reply is owed: nothing was sent")

    def _end(self, event: Event, failure: Failure) -> None:
        already_over = self._phase in OVER
        self._move(event)
        if not already_over:
            self._failure = failure
        if self._phase in OVER or self._phase is Phase.LAST:
            self._over.set()
            if self._timer is not None:  # else it would keep what is over in memory
                self._timer.cancel()
                self._timer = None

    def _move(self, event: Event) -> None:
        self._phase = advance(self._phase, event)
        if self._waiter is not None and self._phase not in WAITING:
            _wake(self._waiter)


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _never_failed() -> OpenEnvError:
    return OpenEnvError("The session is not over")
