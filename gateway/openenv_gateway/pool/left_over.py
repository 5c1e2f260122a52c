"""What gateways that were killed have left with Docker is cleared away when the next one starts."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from openenv_client.errors import OpenEnvError
from openenv_gateway.pool.threads import in_thread
from openenv_gateway.settings import Source

log = logging.getLogger(__name__)


def uses_docker(source: Source) -> bool:
    """Whether launching it leaves something with the Docker engine that does not end with this process."""
    return source.kind in ("docker", "swarm") or (source.kind == "hf" and source.launch == "image")


async def clear_left_over(sources: Iterable[Source]) -> None:
    """Remove the containers and services of processes that have ended, if any of these sources uses Docker. A failure is
    logged: the first launch meets the same one, and tells it to whoever waits."""
    if any(map(uses_docker, sources)):
        try:
            await in_thread(_reap, "clear away what is left over")
        except OpenEnvError as error:
            log.warning("what killed gateways may have left with Docker was not cleared away: %s", error)


def _reap() -> None:
    # The Docker SDK takes a second to import.
    from openenv_client.providers.docker_engine import connect  # noqa: PLC0415
    from openenv_client.providers.docker_reap import reap  # noqa: PLC0415
    from openenv_client.providers.swarm_reap import reap_services  # noqa: PLC0415

    client = connect()
    try:
        for name in (*reap(client), *reap_services(client)):
            log.warning("removed %s: the process that launched it was killed", name)
    finally:
        client.close()
