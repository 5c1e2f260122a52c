"""Providers: they launch, watch and end environment servers. The verbs are in `base`; all are synchronous."""

from .base import ContainerProvider, ServerProvider, Watchable
from .command import CommandProvider
from .remote import RemoteProvider
from .uv import UVProvider

__all__ = ["CommandProvider", "ContainerProvider", "RemoteProvider", "ServerProvider", "UVProvider", "Watchable"]
