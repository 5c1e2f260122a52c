"""The environment sessions of one environment: asks `decide` what to do and does it.

One lease is one open connection to one server. A used environment session is never given to anybody else: releasing a lease
closes its connection and frees the place. Capacity is configured, or learnt from the first refusal.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from openenv_client.connection import Connection
from openenv_client.errors import CapacityReached, FactoryFailed, OpenEnvError, ServerUnreachable
from openenv_client.frames import Kind
from openenv_client.session import EnvironmentSession
from openenv_gateway.errors import Draining, QueueTimeout
from openenv_gateway.pool.backoff import Backoff
from openenv_gateway.pool.decide import Evict, Launch, Lease, Limits, ServerView, decide
from openenv_gateway.pool.encoding import encode_request
from openenv_gateway.pool.line import Line, Overdue, Waiter
from openenv_gateway.pool.sources import LAUNCHING_KINDS, RunningServer, launch
from openenv_gateway.settings import EnvironmentSettings

log = logging.getLogger(__name__)

ELSEWHERE_NEXT = (
    "All sessions of that server are in use: wait and call again. It runs elsewhere, so its operator must give it more room "
    "(max_concurrent_envs), or let the gateway launch servers of its own (cmd: or uv: instead of its URL)."
)
REST_S = 0.25
"""How long a server rests that refused a session although, by our count, it has room."""
LOG_LINES = 20
"""How many of a launched server's last lines go with an error about it."""
RELEARN_S = 60.0
"""How long a learnt capacity is believed: a server that runs elsewhere may have been restarted with more room."""
SHORT_LIFE_S = 10.0
"""A server that dies within this time counts as a launch that failed."""
WATCH_S = 0.5
"""How often launched servers are asked whether they still run."""


@dataclass(eq=False, slots=True)
class _Server:
    key: int
    running: RunningServer | None = None
    leased: int = 0
    capacity: int | None = None
    rests_until: float = 0.0
    up_since: float = 0.0
    learnt_at: float = math.inf

    def view(self, now: float) -> ServerView:
        capacity = None if now - self.learnt_at > RELEARN_S else self.capacity
        return ServerView(self.key, self.running is not None, self.leased, capacity, self.rests_until)


@dataclass(eq=False, slots=True)
class LeasedSession:
    """One environment session that belongs to one lane. `release` ends it and frees its place; twice is fine."""

    session: EnvironmentSession
    _free: Callable[[], None]
    released: bool = False

    async def release(self) -> None:
        if self.released:
            return
        self.released = True
        try:
            await self.session.close()
        finally:
            self._free()


class Pool:
    """Hands out environment sessions of one environment. `on_scarcity` is called when somebody waits and nothing is coming;
    it should make lanes that merely linger give up their sessions. `on_restart` is called when a server that runs elsewhere may
    have been restarted: a connection to it broke, and now a session could be opened again."""

    def __init__(
        self,
        settings: EnvironmentSettings,
        on_scarcity: Callable[[], None] = lambda: None,
        on_restart: Callable[[], None] = lambda: None,
    ) -> None:
        self._settings = settings
        self._on_scarcity, self._on_restart = on_scarcity, on_restart
        self._servers: dict[int, _Server] = {}
        self._line: Line[_Server] = Line(settings.timeouts.queue_s, settings.timeouts.launch_s)
        self._tasks: set[asyncio.Task[None]] = set()
        self._next_key = 0
        self._expected = settings.pool.sessions_per_server
        self._has_broken = False
        self._backoff = Backoff()
        self._launch_error: Exception | None = None
        self._closed = self._draining = False

    def __repr__(self) -> str:
        places = ", ".join(f"{s.leased}/{s.capacity or '?'}" for s in self._servers.values())
        return f"<Pool {self._settings.name}: servers [{places}], {len(self._line)} waiting>"

    async def open(self, kind: Kind, data: Mapping[str, Any], reply_timeout_s: float) -> tuple[LeasedSession, str | bytes]:
        """A new environment session and the reply to its first request.

        The first request goes with the opening because only a reply proves that the server gave a session. Waits at most
        `queue_s` for a place, then QueueTimeout. Raises what a launch or the connection raises (LaunchFailed,
        ServerUnreachable, FactoryFailed, WebSocketRefused, ReplyTimeout, EpisodeLost); then nothing stays open.
        """
        waiter = self._line.ticket()
        died: ServerUnreachable | None = None
        while True:
            server = await self._place(waiter)
            try:
                return await self._open_on(server, kind, data, reply_timeout_s)
            except CapacityReached as error:
                waiter.refusal = error
            except ServerUnreachable as error:
                if died is not None or not await self._has_died(server):
                    raise
                died = error  # it may have died for any reason: one other server is tried

    async def base_url(self) -> str:
        """The URL of a running server, launching one when there is none (for its schema and metadata)."""
        for server in self._servers.values():
            if server.running is not None:
                return server.running.base_url
        server = await self._place(self._line.ticket())
        self._free(server)
        if server.running is None:
            raise ServerUnreachable(self._settings.name, "the server ended as soon as it had started")
        return server.running.base_url

    def doing(self) -> str:
        """What whoever opens a session waits for, in a few words."""
        if self._is_starting():
            return "waiting for a server that is being launched"
        if len(self._line):
            return f"waiting for a free environment session ({len(self._line)} in the queue)"
        return "waiting for the first answer of a new environment session"

    def reconsider(self) -> None:
        """Something outside has changed: who waits may be served now, or find lanes that make room."""
        self._act()

    def drain(self) -> None:
        """Open no more sessions: whoever waits is told at once. Those that are open go on."""
        self._draining = True
        self._line.fail(Draining("The gateway is stopping"))

    async def close(self) -> None:
        """Refuse whoever waits, end launches, stop every launched server. Nothing is left running."""
        self._closed = True
        self._line.fail(Draining("The gateway is stopping"))
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        servers = [server.running for server in self._servers.values() if server.running is not None]
        self._servers.clear()
        for outcome in await asyncio.gather(*[server.stop() for server in servers], return_exceptions=True):
            if isinstance(outcome, BaseException):
                log.error("stopping a server of %s failed: %s", self._settings.name, outcome)

    # --- places -----------------------------------------------------------------------------------------------------

    async def _place(self, waiter: Waiter[_Server]) -> _Server:
        if self._closed or self._draining:
            raise Draining("The gateway is stopping")
        self._line.join(waiter)
        try:
            self._act()
            return await self._line.wait(waiter, self._is_starting)
        except (Overdue, asyncio.CancelledError) as error:
            if (server := self._line.leave(waiter)) is not None:
                self._free(server)
            if isinstance(error, Overdue):
                raise self._queue_timeout(waiter.refusal) from waiter.refusal or self._launch_error
            raise

    def _is_starting(self) -> bool:
        return any(server.running is None for server in self._servers.values())

    def _queue_timeout(self, refusal: CapacityReached | None) -> QueueTimeout:
        seconds = self._settings.timeouts.queue_s
        reason = f"; the server says: {refusal.message}" if refusal is not None else ""
        reason += f"; launching another server failed: {self._launch_error}" if self._launch_error is not None else ""
        return QueueTimeout(
            f"No environment session of {self._settings.name} became free within {seconds:g} s{reason}",
            retry_after_s=min(seconds, 5.0),
            next_step=None if self._settings.source.kind in LAUNCHING_KINDS else ELSEWHERE_NEXT,
            active_sessions=refusal.active_sessions if refusal else sum(server.leased for server in self._servers.values()),
            max_sessions=refusal.max_sessions if refusal else self._expected and self._expected * self._max_servers(),
        )

    def _act(self) -> None:
        """Ask `decide` and do what it says. Called after every event."""
        if self._closed:
            return
        now = asyncio.get_running_loop().time()
        limits = Limits(self._max_servers(), self._expected, self._backoff.launches_from)
        views = [server.view(now) for server in self._servers.values()]
        for action in decide(views, len(self._line), limits, now):
            match action:
                case Lease(server=key):
                    self._lease(self._servers[key])
                case Launch():
                    self._launch()
                case Evict():
                    self._on_scarcity()

    def _max_servers(self) -> int:
        return self._settings.pool.max_servers if self._settings.source.kind in LAUNCHING_KINDS else 1

    def _lease(self, server: _Server) -> None:
        if self._line.serve(server):
            server.leased += 1

    def _free(self, server: _Server) -> None:
        server.leased -= 1
        self._act()

    # --- sessions ---------------------------------------------------------------------------------------------------

    async def _open_on(
        self, server: _Server, kind: Kind, data: Mapping[str, Any], reply_timeout_s: float
    ) -> tuple[LeasedSession, str | bytes]:
        leased: LeasedSession | None = None
        try:
            if server.running is None:
                raise ServerUnreachable(self._settings.name, "the server just stopped")
            url = server.running.base_url
            connect_s = self._settings.timeouts.connect_s
            session = await Connection.open(url, connect_timeout_s=connect_s, dumps=encode_request)
            leased = LeasedSession(session, lambda: self._free(server))
            raw = await session.exchange(kind, data, reply_timeout_s)
            self._works(server, leased)
            return leased, raw
        except BaseException as error:
            if isinstance(error, CapacityReached):
                self._learn(server, error)  # before the place is free again, or the next in the queue gets it in vain
            if isinstance(error, FactoryFailed) and server.running is not None:
                error.log = server.running.provider.logs(LOG_LINES)
            if leased is None:
                self._free(server)
            else:
                await leased.release()
            raise

    def _works(self, server: _Server, leased: LeasedSession) -> None:
        self._backoff.succeeded()
        self._launch_error = None
        if self._has_broken:
            self._has_broken = False
            self._on_restart()
        self._spawn(self._until_broken(server, leased), "watch over an environment session")

    async def _until_broken(self, server: _Server, leased: LeasedSession) -> None:
        """A connection that breaks frees its place at once, not when its lane is used again. And a server that was restarted
        may have more room than it had: what was learnt of it is forgotten."""
        await leased.session.wait_closed()
        if not leased.released:
            self._has_broken = self._settings.source.kind not in LAUNCHING_KINDS
            self._forget_capacity(server)
            await leased.release()

    def _forget_capacity(self, server: _Server) -> None:
        if self._settings.pool.sessions_per_server is None:
            server.capacity, server.learnt_at, self._expected = None, math.inf, None

    def _learn(self, server: _Server, refusal: CapacityReached) -> None:
        if refusal.max_sessions:  # a server that allows none is no server to learn from
            server.capacity, server.learnt_at = refusal.max_sessions, asyncio.get_running_loop().time()
            if self._settings.pool.sessions_per_server is None:
                self._expected = refusal.max_sessions
        if server.capacity is None or server.leased - 1 < server.capacity:  # without the one that was refused
            loop = asyncio.get_running_loop()
            server.rests_until = loop.time() + REST_S
            loop.call_later(REST_S + 0.01, self._act)

    async def _has_died(self, server: _Server) -> bool:
        """Whether an unreachable server is one of ours that died: its exit may be seen a moment after its port closed."""
        deadline = asyncio.get_running_loop().time() + 2 * WATCH_S
        while server.running is not None and self._settings.source.kind in LAUNCHING_KINDS:
            if server.running.provider.poll() is not None:
                self._drop(server)
                return True
            if asyncio.get_running_loop().time() >= deadline:
                return False
            await asyncio.sleep(0.02)  # a provider can only be asked, it tells nothing by itself
        return server.running is None

    # --- servers ----------------------------------------------------------------------------------------------------

    def _launch(self) -> None:
        server = _Server(self._next_key, capacity=self._settings.pool.sessions_per_server)
        self._next_key += 1
        self._servers[server.key] = server
        self._spawn(self._run(server), f"server {server.key} of {self._settings.name}")

    def _spawn(self, work: Any, name: str) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, server: _Server) -> None:
        """One server's life: launch, serve until it dies, clean up. Cancelled by `close`, which then stops it."""
        try:
            running = await launch(self._settings.source, self._settings.timeouts)
        except OpenEnvError as error:
            self._launch_failed(server, error)
            return
        except Exception as error:  # noqa: BLE001  (reported to whoever waits; a silent end of this task would hang them)
            log.exception("launching a server of %s failed", self._settings.name)
            self._launch_failed(server, error)
            return
        if self._closed:
            await running.stop()
            return
        server.running, server.up_since = running, asyncio.get_running_loop().time()
        self._act()
        while self._settings.source.kind in LAUNCHING_KINDS and running.provider.poll() is None:  # noqa: ASYNC110
            await asyncio.sleep(WATCH_S)  # a provider can only be asked, it tells nothing by itself
        if self._settings.source.kind in LAUNCHING_KINDS:
            self._drop(server)

    def _launch_failed(self, server: _Server, error: Exception) -> None:
        self._servers.pop(server.key, None)
        self._launch_error = error
        self._hold_launches()
        if not self._servers:
            self._line.fail(error)
        self._act()

    def _hold_launches(self) -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(self._backoff.failed(loop.time()) + 0.01, self._act)

    def _drop(self, server: _Server) -> None:
        if self._servers.pop(server.key, None) is None:
            return
        running, server.running = server.running, None
        if running is not None:
            tail = running.provider.logs(5)
            log.warning("a server of %s died (exit status %s): %s", self._settings.name, running.provider.poll(), tail)
            if asyncio.get_running_loop().time() - server.up_since < SHORT_LIFE_S:
                self._hold_launches()
            self._spawn(running.stop(), f"clean up server {server.key}")
        self._act()
