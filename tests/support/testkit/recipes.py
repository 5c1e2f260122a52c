"""Providers as tests of their contract make them: all with the same verbs, also in another process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from openenv_client.providers import CommandProvider, LocalDockerProvider, ServerProvider, UVProvider, Watchable


class Provider(ServerProvider, Watchable, Protocol):
    """What this package's own providers are."""


class ContainerServer:
    """A LocalDockerProvider with the verbs of the other family."""

    def __init__(self, **arguments: Any) -> None:
        self.docker = LocalDockerProvider(**arguments)
        self._base_url = ""

    def start(self, port: int | None = None, env_vars: Mapping[str, str] | None = None, **options: Any) -> str:
        self._base_url = self.docker.start_container(None, port, env_vars, **options)
        return self._base_url

    def wait_for_ready(self, timeout_s: float = 30.0) -> None:
        self.docker.wait_for_ready(self._base_url, timeout_s)

    def stop(self) -> None:
        self.docker.stop_container()

    def poll(self) -> int | None:
        return self.docker.poll()

    def logs(self, tail: int = 50) -> str:
        return self.docker.logs(tail)


@dataclass(frozen=True)
class Recipe:
    """How to make a provider, also in another process; `broken` makes one whose server dies while it starts."""

    kind: type[CommandProvider] | type[UVProvider] | type[ContainerServer]
    arguments: dict[str, Any]
    broken: dict[str, Any] = field(default_factory=dict)

    def make(self) -> Provider:
        return self.kind(**self.arguments)

    def make_broken(self) -> Provider:
        return self.kind(**self.arguments | self.broken)

    def as_json(self, mark: Mapping[str, str], wait: bool) -> str:
        """For `launch_as_told` in another process."""
        return json.dumps([self.kind.__name__, self.arguments, mark, wait])
