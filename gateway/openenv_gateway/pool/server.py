"""One server of a pool: what runs, who holds places on it, what is known of its room."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from openenv_client.connection import Connection
from openenv_gateway.pool.decide import ServerView
from openenv_gateway.pool.sources import RunningServer

RELEARN_S = 60.0
"""How long a learnt capacity is believed: a server that runs elsewhere may have been restarted with more room."""


@dataclass(eq=False, slots=True)
class LeasedSession:
    """One environment session that belongs to one lane. `release` ends it and frees its place; twice is fine.

    `due`: when the reply to the latest request should be here, on the event loop's clock (time.monotonic)."""

    session: Connection
    _free: Callable[[], None]
    released: bool = False
    due: float = 0.0

    async def release(self) -> None:
        if self.released:
            return
        self.released = True
        try:
            await self.session.close()
        finally:
            self._free()


@dataclass(eq=False, slots=True)
class Server:
    """`leased` counts the places that are taken, also by sessions that are still being opened and by `warm` ones: connected,
    nothing sent yet. `sessions` are all that are open. `idle_since`: since when no lane has a place on it; `seen`: its
    latest sign of life, `busy`: when a request was last seen under way; `is_silent`: it did not answer when it was last asked
    how it is."""

    key: int
    running: RunningServer | None = None
    leased: int = 0
    capacity: int | None = None
    rests_until: float = 0.0
    up_since: float = 0.0
    idle_since: float = math.inf
    learnt_at: float = math.inf
    seen: float = 0.0
    busy: float = 0.0
    is_silent: bool = False
    warming: int = 0
    warms_from: float = 0.0
    warm: list[LeasedSession] = field(default_factory=list)
    sessions: set[LeasedSession] = field(default_factory=set)

    def view(self, now: float) -> ServerView:
        """What `decide` may know of it."""
        capacity = None if now - self.learnt_at > RELEARN_S else self.capacity
        return ServerView(
            key=self.key,
            up=self.running is not None,
            leased=self.leased,
            capacity=capacity,
            rests_until=math.inf if self.is_silent else self.rests_until,
            warm=len(self.warm),
            warming=self.warming,
            warms_from=self.warms_from,
            idle_since=self.idle_since,
        )

    @property
    def in_use(self) -> int:
        """Places that lanes have, or are about to get."""
        return self.leased - len(self.warm) - self.warming

    @property
    def is_idle(self) -> bool:
        """Whether it is up, and no lane has a place on it."""
        return self.running is not None and self.idle_since < math.inf

    def took(self, now: float) -> None:
        """A place was taken or given back."""
        if self.in_use:
            self.idle_since = math.inf
        elif self.idle_since == math.inf:
            self.idle_since = now

    def busy_until(self) -> float:
        """When the last of the requests that are under way is due; 0.0 for none."""
        return max((lease.due for lease in self.sessions if lease.session.owes is not None), default=0.0)

    def cut(self, reason: str) -> None:
        """End all sessions: whoever waits for a reply, and whoever comes next, is told the reason."""
        for lease in tuple(self.sessions):
            lease.session.cut(reason)
