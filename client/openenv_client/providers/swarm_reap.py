"""Clearing away the Swarm services of processes that have ended without doing so themselves."""

from __future__ import annotations

from typing import Any

import docker
from docker.errors import NotFound

from .docker_engine import engine_asked
from .docker_owner import LABEL, has_ended, owner_of


def reap_services(client: docker.DockerClient) -> list[str]:
    """Removes every service whose owner has certainly ended; the names of those removed. On an engine that manages no Swarm
    there is none. Raises `LaunchFailed` if the engine cannot be asked."""
    api: Any = client.api
    with engine_asked("services that were left over", "they could not be removed"):
        if not api.info()["Swarm"].get("ControlAvailable"):
            return []
        return [name for each in api.services(filters={"label": LABEL}) if (name := _removed(api, each))]


def _removed(api: Any, service: dict[str, Any]) -> str:
    """Its name, "" if it stays, or somebody else has removed it."""
    owner = owner_of(service["Spec"]["Labels"])
    if owner is None or not has_ended(owner, lambda host: False):
        return ""
    try:
        api.remove_service(service["ID"])
    except NotFound:
        return ""
    return str(service["Spec"]["Name"])
