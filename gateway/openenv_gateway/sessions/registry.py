"""Who owns which lane. Every lane has a handle; a name or an MCP session may point at one too.

A lane ends when nobody used it for `idle_s`. When its last MCP session ends it lingers `linger_s` for whoever comes with the
handle; lingering lanes are the first to go when somebody waits for a place. So are lanes that their handle alone holds (where
the protocol has no sessions, nobody ever says goodbye) once their episode is over, or when nobody used them for a while.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable

from openenv_gateway.errors import Draining, LaneBusy, UnknownHandle
from openenv_gateway.pool.pool import Pool
from openenv_gateway.sessions.lane import Lane
from openenv_gateway.sessions.latest import LatestResults
from openenv_gateway.sessions.phases import Phase
from openenv_gateway.settings import EnvironmentSettings

log = logging.getLogger(__name__)

MAX_LANES = 10_000
"""Lanes of one environment: far more than places, since a lane without an environment session costs little."""
ABANDONED_S = 120.0
"""A lane that its handle alone holds is in use at least this long after its latest call, whatever `linger_s` is."""


class LaneRegistry:
    """The lanes of one environment. `latest` keeps what was too large of their results."""

    def __init__(self, settings: EnvironmentSettings, on_restart: Callable[[], None] = lambda: None) -> None:
        self._settings = settings
        self.pool = Pool(settings, self._make_room, on_restart)
        self.latest = LatestResults()
        self._by_handle: dict[str, Lane] = {}
        self._by_name: dict[tuple[str, str], Lane] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._abandoned_s = max(settings.timeouts.linger_s, ABANDONED_S)
        self._draining = False

    def __len__(self) -> int:
        return len(self._by_handle)

    @property
    def busy(self) -> int:
        """How many lanes have a call in flight."""
        return sum(1 for lane in self._by_handle.values() if lane.busy)

    def new(self, principal: str) -> Lane:
        """A lane of its own; its environment session is opened by its first call. Raises Draining, LaneBusy."""
        if self._draining:
            raise Draining("The gateway is stopping and takes no new sessions")
        if len(self._by_handle) >= MAX_LANES:
            raise LaneBusy(f"The gateway holds {MAX_LANES} sessions of this environment already")
        lane = Lane(secrets.token_urlsafe(24), principal, self._settings, self.pool)
        self._by_handle[lane.handle] = lane
        return lane

    def by_handle(self, handle: str, principal: str) -> Lane:
        """The lane with that handle. Raises UnknownHandle, also (and alike) for somebody else's."""
        lane = self._by_handle.get(handle)
        if lane is None or lane.principal != principal:
            raise UnknownHandle(f"No session {handle[:64]!r}: it is unknown, expired or closed")
        lane.lingers_since = None
        return lane

    def named(self, principal: str, name: str) -> Lane:
        """The lane of (principal, name), made when there is none."""
        lane = self._by_name.get((principal, name))
        if lane is None:
            lane = self._by_name[principal, name] = self.new(principal)
        return lane

    def known(self, principal: str, name: str) -> Lane | None:
        """The lane of (principal, name), None when there is none."""
        return self._by_name.get((principal, name))

    def leave(self, owner: str, lane: Lane) -> None:
        """`owner` (an MCP session) ends: when it was the last, the lane lingers."""
        lane.owners.discard(owner)
        if not lane.owners and lane not in self._by_name.values():
            lane.lingers_since = time.monotonic()
            if self._settings.timeouts.linger_s == 0:
                self._end(lane)
            self.pool.reconsider()

    def discard_unopened(self, lane: Lane) -> None:
        """End a lane that a call made and then failed to open, unless an MCP session holds it: nobody knows its handle."""
        if lane.phase is Phase.NEW and not lane.owners and not lane.busy:
            self._end(lane)

    def discard(self, lane: Lane) -> None:
        """End a lane at once, in the background (stdio EOF, a WebSocket that closed)."""
        self._end(lane)

    def sweep(self) -> None:
        """End lanes that lingered or idled too long; see whether those who wait can be served. Called about once a second."""
        now = time.monotonic()
        for lane in tuple(self._by_handle.values()):
            if lane.busy:
                continue
            idle = now - lane.last_used
            if lane.lingers_since is not None and now - lane.lingers_since >= self._settings.timeouts.linger_s:
                self._end(lane)
            elif idle >= self._settings.timeouts.idle_s:
                self._expire(lane, idle)
        self.pool.reconsider()

    def drain(self) -> None:
        """Take no new lanes from now on, and open no more environment sessions: calls that wait for one are told at once."""
        self._draining = True
        self.pool.drain()

    def give_up_calls(self) -> None:
        """End the lanes whose calls go on: these calls are answered at once, that their episode is lost."""
        for lane in tuple(self._by_handle.values()):
            if lane.busy:
                self._end(lane)

    async def close(self) -> None:
        """End every lane, then stop the servers."""
        self._draining = True
        for lane in tuple(self._by_handle.values()):
            self._end(lane)
        await asyncio.gather(*self._closing, return_exceptions=True)
        await self.pool.close()

    def _expire(self, lane: Lane, idle: float) -> None:
        """An owned or named lane stays for a second idle period as a mark, so that its agent is told what happened."""
        known = lane.owners or lane in self._by_name.values()
        if known and lane.phase in (Phase.IN_EPISODE, Phase.DONE):
            lane.give_up_session(f"nothing was called for {idle:.0f} s (idle_timeout_s)")
            lane.last_used = time.monotonic()
        else:
            self._end(lane)

    def _make_room(self) -> None:
        if self._closing:  # room is being made already
            return
        dispensable = [lane for lane in self._by_handle.values() if self._is_dispensable(lane)]
        if dispensable:
            log.info("ending a session that nobody uses: somebody waits for a place")
            self._end(min(dispensable, key=lambda lane: lane.lingers_since or lane.last_used))

    def _is_dispensable(self, lane: Lane) -> bool:
        if lane.busy or not lane.holds_place:
            return False
        if lane.owners or lane in self._by_name.values():
            return False
        unused = time.monotonic() - lane.last_used
        return lane.lingers_since is not None or lane.phase is Phase.DONE or unused >= self._abandoned_s

    def _end(self, lane: Lane) -> None:
        self._by_handle.pop(lane.handle, None)
        for key, named in tuple(self._by_name.items()):
            if named is lane:
                del self._by_name[key]
        task = asyncio.get_running_loop().create_task(lane.close(), name=f"end of {lane!r}")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        task.add_done_callback(lambda _: self.latest.forget(lane))
