"""The gateway as its users have it: a process of its own, started from the command line.

    with cli.serving(f"counter={server.base_url}") as gateway:
        ... gateway.url("counter") ...
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import psutil

from testkit.commands import GATEWAY
from testkit.patience import patience
from testkit.servers import Server

START_TIMEOUT_S: Final = 90.0
STOP_TIMEOUT_S: Final = 15.0


class GatewayProcess(Server):
    """`openenv-gateway serve SPEC… --port 0 --json`. `environments` are the banner's objects by name, once it serves."""

    def __init__(self, specs: Sequence[str], config: Path | None, env: Mapping[str, str]) -> None:
        file = [] if config is None else ["--config", str(config)]
        super().__init__([*GATEWAY, "serve", *specs, *file, "--port", "0", "--json"], Path.cwd(), env)
        self._expected = max(1, len(specs))
        self.environments: dict[str, dict[str, Any]] = {}

    def wait_until_serving(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Wait for the banner. Raises TimeoutError with its output; at once when the process has ended instead."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            self._changed.wait_for(lambda: self._ended or len(self._banner()) >= self._expected, deadline - time.monotonic())
            self.environments = {line["environment"]: line for line in self._banner()}
        if len(self.environments) < self._expected:
            raise TimeoutError(f"{' '.join(self.command)} does not serve (exit status {self.poll()}):\n{self.log()[-4000:]}")
        self.base_url = next(iter(self.environments.values()))["url"].partition("/envs/")[0]

    def url(self, name: str) -> str:
        """The MCP URL of one environment."""
        url: str = self.environments[name]["url"]
        return url

    def terminate(self, timeout_s: float = STOP_TIMEOUT_S) -> int:
        """SIGTERM, and its exit status. Raises subprocess.TimeoutExpired if it does not end in time."""
        os.kill(self.pid, signal.SIGTERM)
        return self.wait(patience(timeout_s))

    def connections_to(self, base_url: str) -> int:
        """How many TCP connections it holds to a server."""
        port = int(base_url.rsplit(":", 1)[1].partition("/")[0])
        open_ones = psutil.Process(self.pid).net_connections("tcp")
        return sum(1 for one in open_ones if one.raddr and one.raddr.port == port and one.status == psutil.CONN_ESTABLISHED)

    def _banner(self) -> list[dict[str, Any]]:
        lines = (json.loads(line) for line in self._lines if line.startswith("{"))
        return [line for line in lines if line.get("event") == "serving"]


@contextmanager
def serving(*specs: str, config: Path | None = None, env: Mapping[str, str] | None = None) -> Iterator[GatewayProcess]:
    """A gateway that serves; when the block is left it is stopped as an operator stops it, and must end well."""
    with started(*specs, config=config, env=env) as gateway:
        gateway.wait_until_serving()
        yield gateway
        assert gateway.terminate() == 0, gateway.log()


@contextmanager
def started(*specs: str, config: Path | None = None, env: Mapping[str, str] | None = None) -> Iterator[GatewayProcess]:
    """The same without waiting, for gateways that are not meant to serve, or that the test itself ends."""
    gateway = GatewayProcess(specs, config, env or {})
    try:
        yield gateway
    finally:
        gateway.close()
