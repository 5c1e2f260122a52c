"""How a pool fares, for those who ask from outside: `/ready`, and errors."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from openenv_gateway.pool.fleet import Fleet, log_of, reason_of


@dataclass(frozen=True, slots=True)
class PoolStatus:
    """`state`: "up" (a server runs), "starting", "idle" (none runs, none is needed), "failing" (the latest launch failed and
    the next one waits), "given up" (too many failed in a row), "stopping". Counts are of servers, environment sessions that
    agents hold, warm ones, and calls that wait. `error` and `log` tell of the latest launch that failed; the next one is
    possible in `next_launch_s` seconds."""

    state: str
    servers: int
    starting: int
    sessions: int
    warm: int
    waiting: int
    error: str | None = None
    log: str | None = None
    next_launch_s: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Without what there is nothing to say of."""
        told = {
            "state": self.state,
            "servers": self.servers,
            "starting": self.starting,
            "sessions": self.sessions,
            "warm": self.warm,
            "waiting": self.waiting,
            "error": self.error,
            "log": self.log,
            "next_launch_s": None if self.next_launch_s is None else round(self.next_launch_s, 1),
        }
        return {key: value for key, value in told.items() if value is not None}


def status_of(fleet: Fleet, waiting: int, *, is_stopping: bool) -> PoolStatus:
    """How a fleet fares, and `waiting` calls with it."""
    up = [server for server in fleet.servers.values() if server.running is not None]
    wait_s = fleet.launches_from - asyncio.get_running_loop().time()
    return PoolStatus(
        state="stopping" if is_stopping else _state(fleet),
        servers=len(up),
        starting=len(fleet.servers) - len(up),
        sessions=sum(server.in_use for server in up),
        warm=sum(len(server.warm) for server in up),
        waiting=waiting,
        error=None if fleet.error is None else reason_of(fleet.error),
        log=log_of(fleet.error) or None,
        next_launch_s=wait_s if wait_s > 0 else None,
    )


def _state(fleet: Fleet) -> str:
    if fleet.servers:
        return "starting" if all(server.running is None for server in fleet.servers.values()) else "up"
    if fleet.error is None:
        return "idle"
    return "given up" if fleet.has_given_up else "failing"
