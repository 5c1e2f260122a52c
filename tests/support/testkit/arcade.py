"""The real server that has every environment: see tests/real/environments/arcade.py. Started by tests/real/conftest.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from testkit import servers, venvs

PACKAGES: Final = (venvs.OPENENV_0_10, venvs.OPENENV_CORE_0_3, venvs.OPENENV_CORE_0_2)
"""The versions of the framework that the suite plays on."""

SESSIONS: Final = 64
"""How many sessions each environment of an arcade gives, but for `duo` (2) and `solo` (1)."""


@dataclass(frozen=True, slots=True)
class Arcade:
    """A running arcade on one version of the framework."""

    package: str
    server: servers.Server

    def url(self, environment: str) -> str:
        """The base URL of one environment."""
        return f"{self.server.base_url}/{environment}"

    def spec(self, environment: str, options: str = "") -> str:
        """What the gateway is told to serve it: `NAME=URL`, with options as a query."""
        return f"{environment}={self.url(environment)}{'?' if options else ''}{options}"
