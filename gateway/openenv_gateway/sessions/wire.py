"""The environment session of one lane, and what is still owed on it.

OpenEnv's wire has no ids: replies come in order. Whatever a caller gave up on (an opening, a reply) is settled before anything
else is sent, so that it can never become the answer of another call.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import Any

from openenv_client.errors import EpisodeLost, OpenEnvError, ReplyTimeout
from openenv_client.frames import Kind, Observation, Reply, State
from openenv_gateway.errors import GatewayError, StillOpening
from openenv_gateway.pool.pool import Pool, Ticket
from openenv_gateway.pool.server import LeasedSession
from openenv_gateway.sessions.faults import read_reply, require_answer
from openenv_gateway.sessions.outcome import Late
from openenv_gateway.settings import Timeouts

log = logging.getLogger(__name__)

OPERATOR = "operator"
"""The tool under which `Wire.sent` notes what an operator sent: no tool, and whoever gave it up is told nothing later."""

Opened = tuple[LeasedSession, bytes, Reply]


class Wire:
    """Opens, asks, settles and ends the environment session of one lane. One caller at a time."""

    def __init__(self, pool: Pool, timeouts: Timeouts) -> None:
        self._pool, self._timeouts = pool, timeouts
        self._lease: LeasedSession | None = None
        self._opening: asyncio.Task[Opened] | None = None
        self.ticket: Ticket | None = None
        """The place in the queue of the latest opening."""
        self._ends: set[asyncio.Task[None]] = set()
        self._due = 0.0
        self.sent: tuple[Kind, str, Mapping[str, Any]] = ("reset", "reset", {})
        """The latest request: its kind, the tool that made it, its data."""

    @property
    def has_session(self) -> bool:
        """Whether an environment session is held (or being opened)."""
        return self._lease is not None or self._opening is not None

    @property
    def is_unsettled(self) -> bool:
        """Whether `settle` has something to wait for."""
        return self._opening is not None or (self._lease is not None and self._lease.session.owes is not None)

    @property
    def is_open(self) -> bool:
        """Whether another request can be sent."""
        return self._lease is not None and self._lease.session.is_open

    async def open(self, data: Mapping[str, Any]) -> Observation:
        """A new session, by its first reset.

        The work is a task of the lane's own: a caller who gives up while a server is launched does not end the launch, the next
        call settles it. Raises what the pool raises, EnvironmentFault for a reset that failed, EpisodeLost when `close` came
        first; then there is no session.
        """
        _, reply = await self._opened_by("reset", "reset", data, self._timeouts.reset_s)
        assert isinstance(reply, Observation), "an opening reset is answered by an observation, or raises"
        return reply

    async def relay(self, kind: Kind, data: Mapping[str, Any], timeout_s: float) -> tuple[bytes, Reply]:
        """Send an operator's request as it is, and return the reply as it came and as it is read: error frames are replies too.

        Opens the session with it when there is none. Raises as `open` and `exchange` do, but no EnvironmentFault.
        """
        if self._lease is None:
            return await self._opened_by(kind, OPERATOR, data, timeout_s)
        self._note(kind, OPERATOR, data, timeout_s)
        try:
            raw = await self._lease.session.exchange(kind, data, timeout_s)
        except asyncio.CancelledError:
            # An operator's patience has no limit, but it has ended now: whoever comes next waits no longer than for an agent.
            self._due = min(self._due, time.monotonic() + self._timeouts.step_s)
            raise
        return raw, read_reply(raw, kind)

    async def exchange(self, kind: Kind, tool: str, data: Mapping[str, Any], timeout_s: float) -> Observation | State:
        """Send one request on the open session and return its answer.

        Raises EnvironmentFault, ReplyTimeout (owed from now on), EpisodeLost and BadReply (the session is ended: after a reply
        that cannot be read, replies may be off by one).
        """
        assert self._lease is not None, "the lane opens a session before it asks"
        self._note(kind, tool, data, timeout_s)
        raw = await self._lease.session.exchange(kind, data, timeout_s)
        return require_answer(read_reply(raw, kind), kind)

    async def settle(self) -> Late | None:
        """Wait for what an earlier caller left behind, and return it.

        Raises StillOpening, and EpisodeLost for a reply that did not come within `late_reply_s` after it was due: however
        often callers come and give up, that moment does not move.
        """
        if self._opening is not None:
            return await self._settle_opening(self._opening)
        if self._lease is None or self._lease.session.owes is None:
            return None
        kind, tool, data = self.sent
        try:
            raw = await self._lease.session.collect(max(0.0, self._due + self._timeouts.late_reply_s - time.monotonic()))
        except ReplyTimeout:
            bound = self._timeouts.late_reply_s
            raise EpisodeLost(f"the reply to an earlier {kind} did not come, {bound:g} s after it was due") from None
        return Late(kind, tool, data, read_reply(raw, kind))

    def drop(self) -> None:
        """End the session in the background."""
        lease, self._lease = self._lease, None
        if lease is not None:
            end = asyncio.create_task(lease.release(), name="end of an environment session")
            self._ends.add(end)
            end.add_done_callback(self._ends.discard)

    async def close(self) -> None:
        """End the session or its opening at once; who waits for a reply gets EpisodeLost."""
        opening, self._opening = self._opening, None
        if opening is not None:
            opening.cancel()
            await asyncio.wait({opening})
            if not opening.cancelled() and opening.exception() is None:
                await opening.result()[0].release()
        self.drop()
        if self._ends:
            await asyncio.wait(self._ends)

    def _note(self, kind: Kind, tool: str, data: Mapping[str, Any], timeout_s: float) -> None:
        self.sent = (kind, tool, data)
        self._due = time.monotonic() + timeout_s
        if self._lease is not None:
            self._lease.due = self._due

    async def _opened_by(self, kind: Kind, tool: str, data: Mapping[str, Any], timeout_s: float) -> tuple[bytes, Reply]:
        self._note(kind, tool, data, timeout_s)
        self.ticket = self._pool.ticket()
        opening = self._opening = asyncio.create_task(self._open(kind, tool, data, timeout_s), name="opening of a session")
        try:
            await asyncio.wait({opening})
        except asyncio.CancelledError:
            if not opening.cancelled():
                raise  # given up: the next call settles it
        return self._opened(opening)

    async def _open(self, kind: Kind, tool: str, data: Mapping[str, Any], timeout_s: float) -> Opened:
        lease, first = await self._pool.open(kind, data, timeout_s, self.ticket)
        try:
            raw = first.encode() if isinstance(first, str) else first
            reply = read_reply(raw, kind)
            return lease, raw, reply if tool == OPERATOR else require_answer(reply, kind)
        except BaseException:
            await lease.release()
            raise

    def _opened(self, opening: asyncio.Task[Opened]) -> tuple[bytes, Reply]:
        if opening.cancelled():
            raise EpisodeLost("the session was closed while it was being opened")
        self._opening = None
        self._lease, raw, reply = opening.result()
        return raw, reply

    async def _settle_opening(self, opening: asyncio.Task[Opened]) -> Late | None:
        done, _ = await asyncio.wait({opening}, timeout=self._timeouts.late_reply_s)
        if not done:
            raise StillOpening("An earlier call is still opening this session's environment")
        try:
            _, reply = self._opened(opening)
        except (OpenEnvError, GatewayError) as error:
            # Nothing is lost: there was no episode yet, and the present call opens anew and meets the same error itself.
            log.warning("an opening that its caller had given up failed: %s", error)
            return None
        return Late(*self.sent, reply)

