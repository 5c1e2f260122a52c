"""What to do next for those who wait for an environment session. Pure: plain values in, a list of actions out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServerView:
    """What `decide` knows of one server. `capacity` None: not learnt yet, so any number may try. A server that refused a
    session although our count says it has room (others use it, or a running step holds the slot) rests until `rests_until`.

    Of the `leased` places, `warm` are connected and nobody's yet, and `warming` are being connected; no further one is before
    `warms_from`. `idle_since`: since when no lane has a place there."""

    key: int
    up: bool
    leased: int
    capacity: int | None
    rests_until: float = 0.0
    warm: int = 0
    warming: int = 0
    warms_from: float = 0.0
    idle_since: float = math.inf


@dataclass(frozen=True, slots=True)
class Limits:
    """`max_servers` that may run at once; `expected_capacity`: sessions per server, as configured or as learnt so far;
    `launches_from`: before that time nothing is launched, because the latest launches failed.

    `warm_servers` run and `warm_sessions` are connected also when nobody waits; a server that is idle for `idle_s` stops."""

    max_servers: int
    expected_capacity: int | None
    launches_from: float = 0.0
    warm_servers: int = 0
    warm_sessions: int = 0
    idle_s: float = math.inf

    @property
    def kept_servers(self) -> int:
        """How many run whether or not anybody waits: sessions that are kept warm need one."""
        return max(self.warm_servers, 1 if self.warm_sessions else 0)


@dataclass(frozen=True, slots=True)
class Lease:
    """Give one session on that server to the first in the queue."""

    server: int


@dataclass(frozen=True, slots=True)
class Launch:
    """Start one more server."""


@dataclass(frozen=True, slots=True)
class Evict:
    """Somebody waits and nothing is coming: lanes that merely linger should make room."""


@dataclass(frozen=True, slots=True)
class Warm:
    """Connect one more session on that server, for whoever comes next."""

    server: int


@dataclass(frozen=True, slots=True)
class Retire:
    """Stop that server: nobody used it for a while."""

    server: int


Action = Lease | Launch | Evict | Warm | Retire


def decide(servers: Sequence[ServerView], waiting: int, limits: Limits, now: float) -> list[Action]:
    """The actions for `waiting` callers, first come first served, at time `now` (the clock of `rests_until`).

    Leases go to the least loaded server with room. What then still waits launches servers, as many as it needs and no more:
    a server that is starting counts with its expected capacity; while that is unknown one start is enough, because the first
    refusal teaches it. Whoever nothing comes for asks the lingering lanes to go. While nobody waits, sessions are warmed and
    servers that are idle for too long are stopped.
    """
    leases = _leases(servers, waiting, now)
    left = waiting - len(leases)
    coming = _coming(servers, limits)
    launches: list[Action] = []
    most = limits.max_servers if now >= limits.launches_from else 0
    while (left > coming or len(servers) + len(launches) < limits.kept_servers) and len(servers) + len(launches) < most:
        launches.append(Launch())
        coming += limits.expected_capacity or max(1, waiting)
    evictions: list[Action] = [Evict()] * max(0, left - coming)
    if waiting:
        return [*leases, *launches, *evictions]
    return [*launches, *_warmups(servers, limits, now), *_retirements(servers, limits, now)]


def _leases(servers: Sequence[ServerView], waiting: int, now: float) -> list[Lease]:
    """A warm session first: it is there already. Else the least loaded server with room."""
    free = {view.key: view for view in servers if view.up and view.rests_until <= now}
    load, warm = {key: view.leased for key, view in free.items()}, {key: view.warm for key, view in free.items()}
    leases: list[Lease] = []
    while len(leases) < waiting:
        ready = [key for key, count in warm.items() if count]
        if ready:
            key = min(ready, key=load.__getitem__)
            warm[key] -= 1
        else:
            room = [key for key, leased in load.items() if (limit := free[key].capacity) is None or leased < limit]
            if not room:
                break
            key = min(room, key=load.__getitem__)
            load[key] += 1
        leases.append(Lease(key))
    return leases


def _coming(servers: Sequence[ServerView], limits: Limits) -> int:
    starting = sum(1 for view in servers if not view.up)
    return starting * (limits.expected_capacity or 10**6)


def _warmups(servers: Sequence[ServerView], limits: Limits, now: float) -> list[Warm]:
    """One at a time on each server, so that a server whose room is not known is not tried in vain by many at once."""
    wanted = limits.warm_sessions - sum(view.warm + view.warming for view in servers)
    fit = [
        view
        for view in servers
        if view.up
        and not view.warming
        and max(view.rests_until, view.warms_from) <= now
        and (view.capacity is None or view.leased < view.capacity)
    ]
    return [Warm(view.key) for view in sorted(fit, key=lambda view: view.leased)[: max(0, wanted)]]


def _retirements(servers: Sequence[ServerView], limits: Limits, now: float) -> list[Retire]:
    """The longest idle first. What is to be kept warm stays, and so does one server if sessions are."""
    idle = [view for view in servers if view.up and now - view.idle_since >= limits.idle_s]
    idle.sort(key=lambda view: view.idle_since)
    return [Retire(view.key) for view in idle[: max(0, len(servers) - limits.kept_servers)]]
