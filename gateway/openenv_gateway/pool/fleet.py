"""The servers of one environment: launched when wanted, watched, replaced when they die, stopped when nobody uses them.

Launches that fail in a row are spaced out; after too many the fleet gives up for a while, and says why.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from openenv_client.errors import LaunchFailed
from openenv_gateway.pool.backoff import Backoff
from openenv_gateway.pool.life import WATCH_S, live
from openenv_gateway.pool.server import Server
from openenv_gateway.pool.sources import LAUNCHING_KINDS, RunningServer
from openenv_gateway.pool.tasks import Tasks
from openenv_gateway.settings import EnvironmentSettings

log = logging.getLogger(__name__)

LOG_LINES = 20
"""How many of a launched server's last lines go with an error about it."""
SHORT_LIFE_S = 10.0
"""A server that dies within this time counts as a launch that failed."""


class Fleet:
    """`servers` by key, those that start included. `is_ours`: they are launched here, rather than run elsewhere.

    `on_change` is called when there may be something to decide, `on_failure` with the error of a launch after which no server
    is left. `error` is that of the latest launch that failed, until a server works.
    """

    def __init__(
        self, settings: EnvironmentSettings, on_change: Callable[[], None], on_failure: Callable[[Exception], None]
    ) -> None:
        self._settings, self.reconsider, self._on_failure = settings, on_change, on_failure
        self.is_ours = settings.source.kind in LAUNCHING_KINDS
        self.servers: dict[int, Server] = {}
        self.error: Exception | None = None
        self._backoff = Backoff(settings.pool.max_restarts)
        self._tasks = Tasks()
        self._next_key = 0
        self._closed = False

    @property
    def is_starting(self) -> bool:
        """Whether any server is being launched."""
        return any(server.running is None for server in self.servers.values())

    @property
    def launches_from(self) -> float:
        """The time before which nothing is launched, because the latest launches failed."""
        return self._backoff.launches_from

    @property
    def has_given_up(self) -> bool:
        return self._backoff.has_given_up

    def works(self) -> None:
        """A session was opened."""
        self._backoff.succeeded()
        self.error = None

    def given_up(self) -> LaunchFailed | None:
        """Why nobody need wait: launches failed so often that the next one is a long time off. None while that is not so."""
        left = self._backoff.launches_from - asyncio.get_running_loop().time()
        if self.servers or not self._backoff.has_given_up or left <= 0:
            return None
        failures, reason, tail = self._backoff.failures, reason_of(self.error), log_of(self.error)
        said = f"given up after {failures} failures in a row, the next launch is tried in {left:.0f} s; the latest: {reason}"
        return LaunchFailed(self._settings.name, said, tail)

    def launch(self) -> None:
        """Start one more server."""
        server = Server(self._next_key, capacity=self._settings.pool.sessions_per_server)
        self._next_key += 1
        self.servers[server.key] = server
        self._tasks.spawn(live(server, self._settings, self), f"server {server.key} of {self._settings.name}")

    def retire(self, server: Server) -> None:
        """Stop a server that nobody uses."""
        log.info("a server of %s is stopped: nobody used it for a while", self._settings.name)
        self._stop(server, "its server was stopped")

    async def has_died(self, server: Server) -> bool:
        """Whether an unreachable server is one of ours that died: its exit may be seen a moment after its port closed."""
        deadline = asyncio.get_running_loop().time() + 2 * WATCH_S
        while server.running is not None and self.is_ours:
            if server.running.provider.poll() is not None:
                self.has_ended(server, "its server died")
                return True
            if asyncio.get_running_loop().time() >= deadline:
                return False
            await asyncio.sleep(0.02)  # a provider can only be asked, it tells nothing by itself
        return server.running is None

    async def close(self) -> None:
        """End launches and stop every server that was launched. Nothing is left running."""
        self._closed = True
        await self._tasks.cancel()
        running = [server.running for server in self.servers.values() if server.running is not None]
        self.servers.clear()
        for outcome in await asyncio.gather(*[one.stop() for one in running], return_exceptions=True):
            if isinstance(outcome, BaseException):
                log.error("stopping a server of %s failed: %s", self._settings.name, outcome)

    # --- what `live` tells ------------------------------------------------------------------------------------------------

    def is_up(self, server: Server, running: RunningServer) -> bool:
        """See life.Owner."""
        if self._closed:
            return False
        server.running = running
        server.took(server.up_since)
        self.reconsider()
        return True

    def launch_failed(self, server: Server, error: Exception) -> None:
        """See life.Owner."""
        self.servers.pop(server.key, None)
        self._hold_launches(error)
        if not self.servers:
            self._on_failure(self.given_up() or error)
        self.reconsider()

    def has_ended(self, server: Server, reason: str) -> None:
        """See life.Owner."""
        if server.key not in self.servers or server.running is None:
            return  # it was stopped
        tail = server.running.provider.logs(LOG_LINES)
        log.warning("a server of %s is gone: %s\n%s", self._settings.name, reason, tail)
        if asyncio.get_running_loop().time() - server.up_since < SHORT_LIFE_S:
            self._hold_launches(LaunchFailed(self._settings.name, f"{reason} soon after it was up", tail))
        self._stop(server, f"{reason}{_last_words(tail)}")
        self.reconsider()

    def _stop(self, server: Server, reason: str) -> None:
        del self.servers[server.key]
        running, server.running = server.running, None
        server.cut(reason)
        assert running is not None, "a server that is stopped was up"
        self._tasks.spawn(running.stop(), f"stop of server {server.key}")

    def _hold_launches(self, error: Exception) -> None:
        loop = asyncio.get_running_loop()
        self.error = error
        loop.call_later(self._backoff.failed(loop.time()) + 0.01, self.reconsider)


def reason_of(error: Exception | None) -> str:
    """What went wrong with a launch, without the log."""
    return error.reason if isinstance(error, LaunchFailed) else str(error)


def log_of(error: Exception | None) -> str:
    """The last lines of the server whose launch failed; empty if there are none."""
    return error.log if isinstance(error, LaunchFailed) else ""


def _last_words(tail: str) -> str:
    """The last line of a log, to be said in a sentence."""
    lines = tail.strip().splitlines()
    return f"; its last line: {lines[-1][:300]}" if lines else ""
