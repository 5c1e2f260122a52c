"""What to do next for those who wait for an environment session. Pure: plain values in, a list of actions out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServerView:
    """What `decide` knows of one server. `capacity` None: not learnt yet, so any number may try. A server that refused a
    session although our count says it has room (others use it, or a running step holds the slot) rests until `rests_until`."""

    key: int
    up: bool
    leased: int
    capacity: int | None
    rests_until: float = 0.0


@dataclass(frozen=True, slots=True)
class Limits:
    """`max_servers` that may run at once; `expected_capacity`: sessions per server, as configured or as learnt so far;
    `launches_from`: before that time nothing is launched, because the latest launches failed."""

    max_servers: int
    expected_capacity: int | None
    launches_from: float = 0.0


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


Action = Lease | Launch | Evict


def decide(servers: Sequence[ServerView], waiting: int, limits: Limits, now: float) -> list[Action]:
    """The actions for `waiting` callers, first come first served, at time `now` (the clock of `rests_until`).

    Leases go to the least loaded server with room. What then still waits launches servers, as many as it needs and no more:
    a server that is starting counts with its expected capacity; while that is unknown one start is enough, because the first
    refusal teaches it. Whoever nothing comes for asks the lingering lanes to go.
    """
    leases = _leases(servers, waiting, now)
    left = waiting - len(leases)
    coming = _coming(servers, limits)
    launches: list[Action] = []
    most = limits.max_servers if now >= limits.launches_from else 0
    while left > coming and len(servers) + len(launches) < most:
        launches.append(Launch())
        coming += limits.expected_capacity or waiting
    evictions: list[Action] = [Evict()] * max(0, left - coming)
    return [*leases, *launches, *evictions]


def _leases(servers: Sequence[ServerView], waiting: int, now: float) -> list[Lease]:
    load = {view.key: view.leased for view in servers if view.up and view.rests_until <= now}
    capacity = {view.key: view.capacity for view in servers}
    leases: list[Lease] = []
    while len(leases) < waiting:
        room = [key for key, leased in load.items() if (limit := capacity[key]) is None or leased < limit]
        if not room:
            break
        key = min(room, key=load.__getitem__)
        load[key] += 1
        leases.append(Lease(key))
    return leases


def _coming(servers: Sequence[ServerView], limits: Limits) -> int:
    starting = sum(1 for view in servers if not view.up)
    return starting * (limits.expected_capacity or 10**6)
