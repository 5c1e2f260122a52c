"""Providers: they launch, watch and end environment servers. The verbs are in `base`; all are synchronous.

Each is loaded when it is first asked for: a client that only connects launches nothing, and imports nothing that does.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .base import ContainerProvider as ContainerProvider
    from .base import ServerProvider as ServerProvider
    from .base import Watchable as Watchable
    from .command import CommandProvider as CommandProvider
    from .docker import LocalDockerProvider as LocalDockerProvider
    from .remote import RemoteProvider as RemoteProvider
    from .swarm import DockerSwarmProvider as DockerSwarmProvider
    from .uv import UVProvider as UVProvider

_MODULES = {
    "CommandProvider": "command",
    "ContainerProvider": "base",
    "DockerSwarmProvider": "swarm",
    "LocalDockerProvider": "docker",
    "RemoteProvider": "remote",
    "ServerProvider": "base",
    "UVProvider": "uv",
    "Watchable": "base",
}

__all__ = [
    "CommandProvider",
    "ContainerProvider",
    "DockerSwarmProvider",
    "LocalDockerProvider",
    "RemoteProvider",
    "ServerProvider",
    "UVProvider",
    "Watchable",
]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
