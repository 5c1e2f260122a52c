"""A real launch of one environment, phase by phase, and where it stops."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from openenv_client.connection import Connection
from openenv_client.discovery import describe, health
from openenv_client.errors import CapacityReached, LaunchFailed, OpenEnvError
from openenv_gateway.doctor.finding import Finding, Status, ok
from openenv_gateway.errors import GatewayError
from openenv_gateway.mapping.tools import build_tools, is_mcp_environment
from openenv_gateway.pool.adapted import Launcher
from openenv_gateway.pool.sources import provider_for
from openenv_gateway.sessions.faults import read_reply, require_answer
from openenv_gateway.settings import EnvironmentSettings

LOG_LINES = 20


@dataclass(slots=True)
class _Clock:
    """How many seconds each phase took, and in which one it `failed` (the first; what comes after is cleaning up)."""

    failed: str = ""
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def time(self, phase: str) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        except BaseException:
            self.failed = self.failed or phase
            raise
        finally:
            self.seconds[phase] = round(time.monotonic() - began, 3)

    def __str__(self) -> str:
        return ", ".join(f"{phase} {seconds:.2f} s" for phase, seconds in self.seconds.items())


def try_launch(environment: EnvironmentSettings) -> Finding:
    """Launches a server of the environment, plays its first reset, and stops it: nothing of it is left, whatever happens.

    A server that runs elsewhere is only asked. The finding says how long each phase took, or which one failed and why, with
    the server's last lines. Blocks for as long as the environment's own time limits allow.
    """
    clock, provider = _Clock(), None
    try:
        provider = provider_for(environment.source)
        _launched(environment, provider, clock)
    except CapacityReached as error:
        said = f"{environment.source} runs, and all its sessions are in use: {error.message}"
        return Finding(_check(environment), Status.NOTE, said, error.next_step, {"seconds": clock.seconds})
    except (OpenEnvError, GatewayError) as error:
        return _failed(environment, clock, str(error), error.next_step, _lines(provider, error))
    except Exception as error:  # noqa: BLE001  (a provider of somebody else's may raise anything: it is told)
        said = f"{type(error).__name__}: {error}"
        return _failed(environment, clock, said, "See the message; the provider raised it.", _lines(provider, error))
    return ok(_check(environment), f"{environment.source}: {clock}", seconds=clock.seconds)


def _launched(environment: EnvironmentSettings, provider: Launcher, clock: _Clock) -> None:
    if environment.source.kind == "http":
        with clock.time("healthy"):
            asyncio.run(health(environment.source.target, environment.timeouts.connect_s))
        _played(environment, environment.source.target, clock)
        return
    try:
        with clock.time("start"):
            url = provider.start()
        with clock.time("healthy"):
            provider.wait_for_ready(environment.timeouts.launch_s)
        _played(environment, url, clock)
    finally:
        with clock.time("stop"):
            provider.stop()


def _played(environment: EnvironmentSettings, url: str, clock: _Clock) -> None:
    with clock.time("schema"):
        asyncio.run(_read_schema(environment, url))
    with clock.time("reset"):
        asyncio.run(_first_reset(environment, url))


async def _read_schema(environment: EnvironmentSettings, url: str) -> None:
    description = await describe(url, timeout_s=environment.timeouts.connect_s)
    if not is_mcp_environment(description):  # those list their tools in a session
        build_tools(description, environment.mapping, [])


async def _first_reset(environment: EnvironmentSettings, url: str) -> None:
    times = environment.timeouts
    connection = await Connection.open(url, connect_timeout_s=times.connect_s)
    try:
        raw = await connection.exchange("reset", dict(environment.reset), times.reset_s)
    finally:
        await connection.close()
    require_answer(read_reply(raw, "reset"), "reset")


def _check(environment: EnvironmentSettings) -> str:
    return f"launch of {environment.name}"


def _failed(environment: EnvironmentSettings, clock: _Clock, said: str, remedy: str, lines: str) -> Finding:
    phase = clock.failed or "start"
    details = {"phase": phase, "seconds": clock.seconds, "log": lines.splitlines()}
    quoted = f"\nLast lines of its log:\n{lines}" if lines and lines not in said else ""
    return Finding(_check(environment), Status.FAILED, f"failed at {phase}: {said}{quoted}", remedy, details)


def _lines(provider: Launcher | None, error: Exception) -> str:
    if isinstance(error, LaunchFailed):
        return error.log
    return provider.logs(LOG_LINES) if provider is not None else ""
