"""Clearing away the Swarm services of processes that have ended without doing so themselves."""

from __future__ import annotations

from typing import Any

import docker
from docker.errors import NotFound

from .docker_engine import engine_asked
from .docker_owner import LABEL, has_ended, owner_of

_WHAT = "services that were left over"


def reap_services(client: docker.DockerClient) -> list[str]:
    """Removes every service whose owner has certainly ended; the names of those removed. On an engine that manages no Swarm
    there is none. Raises `LaunchFailed` if the engine cannot be asked."""
    with engine_asked(_WHAT, "they could not be removed"):
        return [_name(each) for each in _left_over(client) if _removed(client, each)]


def left_over_services(client: docker.DockerClient) -> list[str]:
    """The names of the services that `reap_services` would remove. Raises `LaunchFailed` if the engine cannot be asked."""
    with engine_asked(_WHAT, "they could not be listed"):
        return [_name(each) for each in _left_over(client)]


def _left_over(client: docker.DockerClient) -> list[dict[str, Any]]:
    api: Any = client.api
    if not api.info()["Swarm"].get("ControlAvailable"):
        return []
    return [each for each in api.services(filters={"label": LABEL}) if _is_left_over(each)]


def _is_left_over(service: dict[str, Any]) -> bool:
    owner = owner_of(service["Spec"]["Labels"])
    return owner is not None and has_ended(owner, lambda host: False)


def _removed(client: docker.DockerClient, service: dict[str, Any]) -> bool:
    """Not if somebody else has removed it meanwhile."""
    api: Any = client.api
    try:
        api.remove_service(service["ID"])
    except NotFound:
        return False
    return True


def _name(service: dict[str, Any]) -> str:
    return str(service["Spec"]["Name"])
