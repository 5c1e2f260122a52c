"""Settings, environments and gateways for tests, with short timeouts where nothing should take long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from openenv_gateway.cli.serve import HttpServer, http_config, listen
from openenv_gateway.mapping.options import MappingOptions
from openenv_gateway.settings import EnvironmentSettings, GatewaySettings, PoolSettings, Source, Timeouts
from openenv_gateway.transports.front import FrontProtocol
from openenv_gateway.transports.gateway import Gateway

TIMEOUTS = Timeouts(connect_s=5, launch_s=60, reset_s=5, step_s=5, queue_s=5, late_reply_s=5)


def environment_settings(url: str, name: str = "counting", **changes: Any) -> EnvironmentSettings:
    """Settings of an environment server that runs at `url`. `changes` are fields of EnvironmentSettings, or of its parts with
    their prefix: `timeouts_step_s=0.1`, `mapping_exposure="agent"`, `pool_max_servers=2`."""
    settings = EnvironmentSettings(name, Source("http", url), MappingOptions(), TIMEOUTS, PoolSettings())
    for field, value in changes.items():
        part, _, inner = field.partition("_")
        if part in ("timeouts", "mapping", "pool") and inner:
            changed = {part: replace(getattr(settings, part), **{inner: value})}
        else:
            changed = {field: value}
        settings = replace(settings, **changed)
    return settings


def gateway_settings(*environments: EnvironmentSettings, **changes: Any) -> GatewaySettings:
    """Settings of a gateway on any free port."""
    return replace(GatewaySettings(environments, port=0), **changes)


@dataclass(frozen=True, slots=True)
class Served:
    """A gateway that serves over HTTP on loopback, in this process."""

    gateway: Gateway
    server: HttpServer
    base_url: str

    @property
    def port(self) -> int:
        """Where it listens, on 127.0.0.1."""
        return int(self.base_url.rpartition(":")[2])

    def url(self, name: str = "counting") -> str:
        """The MCP URL of one environment."""
        return f"{self.base_url}/envs/{name}/mcp"


@asynccontextmanager
async def serving(
    *environments: EnvironmentSettings, protocol: type[HttpToolsProtocol] = FrontProtocol, **changes: Any
) -> AsyncIterator[Served]:
    """The real HTTP server in front of these environments; ended with everything that it launched. `protocol` answers on its
    connections."""
    settings = gateway_settings(*environments, **changes)
    with listen("127.0.0.1", 0) as listener:
        async with Gateway(settings) as gateway:
            config = http_config(gateway)
            config.http = protocol
            server = HttpServer(config)
            task = asyncio.create_task(server.serve(sockets=[listener]))
            try:
                yield Served(gateway, server, f"http://127.0.0.1:{listener.getsockname()[1]}")
            finally:
                server.should_exit = True
                await task
