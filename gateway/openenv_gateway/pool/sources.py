"""From a configured source to something that runs: the provider that launches it, driven off the event loop."""

from __future__ import annotations

import asyncio
import logging
import sys
from dataclasses import dataclass
from typing import Any

from openenv_client.discovery import health
from openenv_client.errors import ProviderError
from openenv_client.providers.command import CommandProvider
from openenv_client.providers.remote import RemoteProvider
from openenv_client.providers.space import space_image, space_repository
from openenv_client.providers.uv import UVProvider
from openenv_gateway.pool.adapted import Adapted, Launcher, class_provider
from openenv_gateway.pool.threads import in_thread
from openenv_gateway.settings import ContainerSettings, Source, Timeouts

log = logging.getLogger(__name__)

STOP_GRACE_S = 2.0
"""Between SIGTERM and SIGKILL of a launched server. One that is in the middle of a step takes it all, and a stdio gateway must
leave nothing five seconds after its host."""
LAUNCHING_KINDS = frozenset({"demo", "cmd", "uv", "docker", "hf", "swarm", "py"})


def provider_for(source: Source) -> Launcher:
    """A new provider for one server of `source`; it may look for docker or uv, so that it takes a while. Nothing is started.

    What it says holds no value of `env_vars` (of eight characters or more). Raises ProviderError if there is none.
    """
    env_vars = dict(source.env_vars)
    match source.kind:
        case "demo":
            command = [sys.executable, "-m", "openenv_gateway.demo", "--port", "{port}"]
            return CommandProvider(command, env_vars=env_vars, stop_grace_s=STOP_GRACE_S)
        case "cmd":
            return CommandProvider(
                source.target, cwd=source.cwd, env_vars=env_vars, stop_grace_s=STOP_GRACE_S, memory=source.container.memory
            )
        case "uv":
            folder, app = source.target, source.app
            return _uv_provider(source, folder, app)
        case "docker":
            return _image_provider(source, source.target)
        case "hf" if source.launch == "uv":
            return _uv_provider(source, space_repository(source.target))
        case "hf":
            return _image_provider(source, space_image(source.target))
        case "swarm":
            return _service_provider(source)
        case "py":
            return class_provider(source)
        case "http":
            return RemoteProvider(source.target)
        case kind:
            raise ProviderError(f"This version cannot launch {kind}: sources")


def _uv_provider(source: Source, project: str, app: str | None = None) -> Launcher:
    return UVProvider(
        project_path=project,
        app=app,
        cwd=source.cwd,
        env_vars=source.env_vars,
        stop_grace_s=STOP_GRACE_S,
        memory=source.container.memory,
    )


def _image_provider(source: Source, image: str) -> Launcher:
    # The Docker SDK takes a second to import, which only those wait for who launch images.
    from openenv_client.providers.docker import LocalDockerProvider  # noqa: PLC0415

    wanted = {**_in_common(source.container), "pids": source.container.pids, "network": source.container.network}
    provider = LocalDockerProvider(
        image, env_vars=source.env_vars, stop_grace_s=STOP_GRACE_S, on_pull=log.info, **wanted
    )
    return Adapted(provider, {})


def _service_provider(source: Source) -> Launcher:
    from openenv_client.providers.swarm import DockerSwarmProvider  # noqa: PLC0415  (as above)

    wanted, may_init = _in_common(source.container), source.swarm_init
    provider = DockerSwarmProvider(
        source.target, env_vars=source.env_vars, stop_grace_s=STOP_GRACE_S, swarm_init=may_init, **wanted
    )
    return Adapted(provider, {})


def _in_common(wanted: ContainerSettings) -> dict[str, Any]:
    """The options that containers have in common, whoever starts them."""
    return {
        "memory": wanted.memory,
        "cpus": wanted.cpus,
        "read_only": wanted.read_only,
        "mounts": wanted.mounts,
        "container_port": wanted.port,
    }


@dataclass(slots=True)
class RunningServer:
    """One launched (or remote) server and the provider that answers for it."""

    provider: Launcher
    base_url: str

    async def stop(self) -> None:
        """Stop it; nothing of it is left. Safe to call twice."""
        await in_thread(self.provider.stop, "stop of a server")


async def launch(source: Source, timeouts: Timeouts) -> RunningServer:
    """Start one server of `source` and wait until it is healthy; a server that runs elsewhere must be healthy now.

    Raises LaunchFailed (with the server's last log lines), ServerUnreachable or another ProviderError. Whatever goes wrong,
    cancellation included, nothing is left running.
    """
    provider = await in_thread(lambda: provider_for(source), "look for a provider")
    starting = in_thread(provider.start, "start of a server")
    try:
        base_url = await asyncio.shield(starting)
        if source.kind in LAUNCHING_KINDS:
            await in_thread(lambda: provider.wait_for_ready(timeouts.launch_s), "wait for a server")
        else:
            await health(base_url, timeouts.connect_s)
    except BaseException:
        await asyncio.shield(_give_up(provider, starting))
        raise
    return RunningServer(provider, base_url)


async def _give_up(provider: Launcher, starting: asyncio.Future[str]) -> None:
    """Stop what may still be starting in its thread: `stop` ends a wait, but a start that comes after it would remain."""
    await in_thread(provider.stop, "stop of a server")
    await asyncio.wait({starting})
    await in_thread(provider.stop, "stop of a server")
