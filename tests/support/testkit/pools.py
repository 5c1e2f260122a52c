"""Pools for tests: of a scripted server, and of demo servers that are launched, each a real process."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import psutil

from openenv_gateway.pool.pool import Pool
from openenv_gateway.pool.server import LeasedSession
from openenv_gateway.settings import EnvironmentSettings, Source
from testkit.gateways import environment_settings

DEMO = f"{sys.executable} -m openenv_gateway.demo --port {{port}}"


@asynccontextmanager
async def pool_of(settings: EnvironmentSettings, **options: Any) -> AsyncIterator[Pool]:
    """A pool that is closed at the end."""
    pool = Pool(settings, **options)
    try:
        yield pool
    finally:
        await pool.close()


def launched(command: str, **changes: Any) -> EnvironmentSettings:
    """An environment whose servers are launched by a command; `changes` as for environment_settings."""
    return environment_settings("", source=Source("cmd", command), **changes)


async def opened(pool: Pool) -> LeasedSession:
    """A session of the pool's, reset."""
    lease, _ = await pool.open("reset", {}, 5)
    return lease


def listener_of(url: str) -> int:
    """The process that listens at a URL of this machine."""
    port = int(url.rpartition(":")[2])
    for connection in psutil.net_connections("tcp"):
        if connection.status == psutil.CONN_LISTEN and connection.laddr[1:] == (port,) and connection.pid:
            return int(connection.pid)
    raise LookupError(f"nothing listens at {url}")


async def until(condition: Callable[[], bool], within_s: float = 20.0) -> None:
    """Wait for what tells nobody when it happens: the state of a pool, of a process."""
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
