"""Clearing away the containers of processes that have ended without doing so themselves."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any

import docker
from docker.errors import APIError, NotFound

from .docker_engine import engine_asked
from .docker_owner import LABEL, has_ended, owner_of

logger = logging.getLogger(__name__)
_WHAT = "containers that were left over"


def reap(client: docker.DockerClient) -> list[str]:
    """Removes every container whose owner has certainly ended, with its volumes; the names of those removed.

    Those of owners that live, or of whom nothing can be known (another machine's), stay. Raises `LaunchFailed` if the engine
    cannot be asked; one container that cannot be removed is logged and does not keep the others.
    """
    return [name for each in _left_over(client) if (name := _removed(client, each))]


def left_over(client: docker.DockerClient) -> list[str]:
    """The names of the containers that `reap` would remove. Raises `LaunchFailed` if the engine cannot be asked."""
    return [_name(each) for each in _left_over(client)]


def _left_over(client: docker.DockerClient) -> list[dict[str, Any]]:
    with engine_asked(_WHAT, "they could not be listed"):
        found = client.api.containers(all=True, filters={"label": LABEL})
        return [each for each in found if _is_left_over(client, each)]


def _name(container: dict[str, Any]) -> str:
    return str(container["Names"][0]).lstrip("/")


def _is_left_over(client: docker.DockerClient, container: dict[str, Any]) -> bool:
    owner = owner_of(container["Labels"])
    return owner is not None and has_ended(owner, lambda host: _started_since(client, host, container["Created"]))


def _started_since(client: docker.DockerClient, host: str, created: float) -> bool:
    """Whether the container in which the owner lived does not run any more, or was started again later than `created`."""
    try:
        state = client.api.inspect_container(host)["State"]
    except NotFound:
        return False
    return not state["Running"] or _seconds(state["StartedAt"]) > created + 1


def _seconds(time: str) -> float:
    """The engine writes nanoseconds, which Python 3.10 does not read: whole seconds are enough."""
    return datetime.fromisoformat(time[:19] + "+00:00").timestamp()


def _removed(client: docker.DockerClient, container: dict[str, Any]) -> str:
    """Its name, "" if it could not be removed."""
    name = _name(container)
    try:
        client.api.remove_container(container["Id"], v=True, force=True)
    except NotFound:
        return ""
    except APIError as exc:
        logger.warning("the container %s, whose owner has ended, could not be removed: %s", name, exc.explanation)
        return ""
    logger.info("removed the container %s: the process that launched it has ended", name)
    return name
