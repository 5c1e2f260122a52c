"""What whoever waited in vain for an environment session is told."""

from __future__ import annotations

from openenv_client.errors import CapacityReached
from openenv_gateway.errors import QueueTimeout
from openenv_gateway.pool.fleet import Fleet
from openenv_gateway.settings import EnvironmentSettings

ELSEWHERE_NEXT = (
    "All sessions of that server are in use: wait and call again. It runs elsewhere, so its operator must give it more room "
    "(max_concurrent_envs), or let the gateway launch servers of its own (cmd: or uv: instead of its URL)."
)
MOST_S = 5.0
"""After so many seconds at most it is worth asking again: sessions end at any time."""


def queue_timeout(
    settings: EnvironmentSettings, fleet: Fleet, refusal: CapacityReached | None, places: int | None
) -> QueueTimeout:
    """The error. `refusal`: the latest that a server told the waiter; `places`: how many sessions there can be, if known."""
    seconds, error = settings.timeouts.queue_s, fleet.error
    reason = f"; the server says: {refusal.message}" if refusal is not None else ""
    reason += f"; launching another server failed: {error}" if error is not None else ""
    active = sum(server.leased for server in fleet.servers.values())
    return QueueTimeout(
        f"No environment session of {settings.name} became free within {seconds:g} s{reason}",
        retry_after_s=min(seconds, MOST_S),
        next_step=None if fleet.is_ours else ELSEWHERE_NEXT,
        active_sessions=refusal.active_sessions if refusal else active,
        max_sessions=refusal.max_sessions if refusal else places,
    )
