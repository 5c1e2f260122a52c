"""One server's life: launched, watched, until it dies or is given up."""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from openenv_client.discovery import health
from openenv_client.errors import LaunchFailed, OpenEnvError
from openenv_gateway.pool.health import PROBES, Verdict, judge
from openenv_gateway.pool.server import Server
from openenv_gateway.pool.sources import LAUNCHING_KINDS, RunningServer, launch
from openenv_gateway.settings import EnvironmentSettings

log = logging.getLogger(__name__)

WATCH_S = 0.5
"""How often launched servers are asked whether they still run."""


class Owner(Protocol):
    """Who has the server, and is told what becomes of it."""

    def launch_failed(self, server: Server, error: Exception) -> None: ...

    def is_up(self, server: Server, running: RunningServer) -> bool:
        """It is healthy. False: it is not wanted any more, and is stopped."""
        ...

    def reconsider(self) -> None:
        """It fell silent, or answers again."""
        ...

    def has_ended(self, server: Server, reason: str) -> None:
        """It died, or was given up; what is left of it is the owner's to stop."""
        ...


async def live(server: Server, settings: EnvironmentSettings, owner: Owner) -> None:
    """Launch a server and watch it until its end. Cancelled, it leaves what is running to the owner."""
    try:
        running = await launch(settings.source, settings.timeouts)
    except OpenEnvError as error:
        owner.launch_failed(server, error)
        return
    except Exception as error:
        log.exception("launching a server of %s failed", settings.name)
        owner.launch_failed(server, LaunchFailed(settings.name, f"{type(error).__name__}: {error}"))
        return
    server.seen = server.up_since = asyncio.get_running_loop().time()
    if owner.is_up(server, running):
        owner.has_ended(server, await _end(server, running, settings, owner))
    else:
        await running.stop()


async def _end(server: Server, running: RunningServer, settings: EnvironmentSettings, owner: Owner) -> str:
    """Wait for the server's end, and say what it was."""
    watches = [asyncio.create_task(_until_silent(server, running, settings, owner), name="health of a server")]
    if settings.source.kind in LAUNCHING_KINDS:
        watches.append(asyncio.create_task(_until_dead(running), name="watch over a server"))
    try:
        done, _ = await asyncio.wait(watches, return_when=asyncio.FIRST_COMPLETED)
        return done.pop().result()
    finally:
        for watch in watches:
            watch.cancel()
        await asyncio.gather(*watches, return_exceptions=True)


async def _until_dead(running: RunningServer) -> str:
    while (status := running.provider.poll()) is None:  # noqa: ASYNC110
        await asyncio.sleep(WATCH_S)  # a provider can only be asked, it tells nothing by itself
    return f"its server died (exit status {status})"


async def _until_silent(server: Server, running: RunningServer, settings: EnvironmentSettings, owner: Owner) -> str:
    silence_s = settings.pool.health_timeout_s
    while True:
        await asyncio.sleep(silence_s / PROBES)
        due = server.busy_until()
        now = await _asked(server, running, silence_s / PROBES)
        server.busy = max(server.busy, min(now, max(due, server.busy_until())))
        verdict = judge(now, server.seen, server.busy, silence_s)
        if verdict is Verdict.GIVE_UP:
            return f"its server gave no sign of life for {now - server.seen:.3g} s"
        if server.is_silent is not (verdict is Verdict.WAIT):
            server.is_silent = verdict is Verdict.WAIT
            owner.reconsider()


async def _asked(server: Server, running: RunningServer, timeout_s: float) -> float:
    """Ask the server how it is. Returns the time then."""
    loop = asyncio.get_running_loop()
    try:
        await health(running.base_url, timeout_s)
    except OpenEnvError as error:
        log.debug("%s: %s", running.base_url, error)
    else:
        server.seen = loop.time()
    return loop.time()
