"""The environment sessions of one environment: asks `decide` what to do and does it.

One lease is one open connection to one server. A used environment session is never given to anybody else: releasing a lease
closes its connection and frees the place. Capacity is configured, or learnt from the first refusal.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from openenv_client.connection import Connection
from openenv_client.errors import CapacityReached, FactoryFailed, OpenEnvError, ServerUnreachable
from openenv_client.frames import Kind
from openenv_gateway.errors import Draining
from openenv_gateway.pool.decide import Evict, Launch, Lease, Limits, Retire, Warm, decide
from openenv_gateway.pool.encoding import encode_request
from openenv_gateway.pool.fleet import LOG_LINES, Fleet
from openenv_gateway.pool.line import Line, Overdue, Waiter
from openenv_gateway.pool.overdue import queue_timeout
from openenv_gateway.pool.server import LeasedSession, Server
from openenv_gateway.pool.status import PoolStatus, status_of
from openenv_gateway.pool.tasks import Tasks
from openenv_gateway.settings import EnvironmentSettings

log = logging.getLogger(__name__)

REST_S = 0.25
"""How long a server rests that refused a session although, by our count, it has room."""
WARM_FOR_S, WARM_AGAIN_S = 120.0, 5.0
"""How long a warm session is kept, and how long none is tried after one could not be had."""


class Place(NamedTuple):
    """What somebody who waits is given: room on a server, or a session there that is connected already."""

    server: Server
    warm: LeasedSession | None


Ticket = Waiter[Place]


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
        self._line: Line[Place] = Line(settings.timeouts.queue_s, settings.timeouts.launch_s)
        self._fleet = Fleet(settings, self.reconsider, self._line.fail)
        self._tasks = Tasks()
        self._expected = settings.pool.sessions_per_server
        self._has_broken = False
        self._idle_timer: asyncio.TimerHandle | None = None
        self._closed = self._draining = False

    def __repr__(self) -> str:
        places = ", ".join(f"{s.leased}/{s.capacity or '?'}" for s in self._fleet.servers.values())
        return f"<Pool {self._settings.name}: servers [{places}], {len(self._line)} waiting>"

    def ticket(self) -> Ticket:
        """For `open` and `doing`: who has it can be told its place in the queue."""
        return self._line.ticket()

    async def open(
        self, kind: Kind, data: Mapping[str, Any], reply_timeout_s: float, ticket: Ticket | None = None
    ) -> tuple[LeasedSession, str | bytes]:
        """A new environment session and the reply to its first request.

        The first request goes with the opening because only a reply proves that the server gave a session. Waits at most
        `queue_s` for a place, then QueueTimeout. Raises what a launch or the connection raises (LaunchFailed,
        ServerUnreachable, FactoryFailed, WebSocketRefused, ReplyTimeout, EpisodeLost); then nothing stays open.
        """
        waiter = ticket or self._line.ticket()
        died: ServerUnreachable | None = None
        while True:
            place = await self._place(waiter)
            try:
                return await self._open_on(place, kind, data, reply_timeout_s)
            except CapacityReached as error:
                waiter.refusal = error
            except ServerUnreachable as error:
                if died is not None or not await self._fleet.has_died(place.server):
                    raise
                died = error  # it may have died for any reason: one other server is tried

    async def base_url(self) -> str:
        """The URL of a running server, launching one when there is none (for its schema and metadata)."""
        for server in self._fleet.servers.values():
            if server.running is not None:
                return server.running.base_url
        place = await self._place(self._line.ticket())
        self._give_back(place)
        if place.server.running is None:
            raise ServerUnreachable(self._settings.name, "the server ended as soon as it had started")
        return place.server.running.base_url

    def doing(self, ticket: Ticket | None = None) -> str:
        """What whoever opens a session waits for, in a few words."""
        if self._fleet.is_starting:
            return "waiting for a server that is being launched"
        if ticket is not None and (ahead := self._line.ahead_of(ticket)) is not None:
            return f"waiting for a free environment session ({ahead} ahead in the queue, {ticket.left:.0f} s left)"
        return "waiting for the first answer of a new environment session"

    def reconsider(self) -> None:
        """Something has changed: who waits may be served now, or find lanes that make room."""
        self._act()

    def drain(self) -> None:
        """Open no more sessions: whoever waits is told at once. Those that are open go on."""
        self._draining = True
        self._line.fail(Draining("The gateway is stopping"))

    async def close(self) -> None:
        """Refuse whoever waits, end launches, stop every launched server. Nothing is left running."""
        self._closed = True
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        self._line.fail(Draining("The gateway is stopping"))
        await self._tasks.cancel()
        warm = [leased for server in self._fleet.servers.values() for leased in server.warm]
        await asyncio.gather(*[leased.release() for leased in warm])
        await self._fleet.close()

    def status(self) -> PoolStatus:
        """How it fares now."""
        return status_of(self._fleet, len(self._line), is_stopping=self._closed or self._draining)

    @property
    def is_failing(self) -> bool:
        """Whether there is no server because launching them fails, and no call would launch one yet. (Once one would, whoever
        asks before it calls must not be kept from calling.)"""
        if self._fleet.error is None or self._fleet.servers:
            return False
        return asyncio.get_running_loop().time() < self._fleet.launches_from

    # --- places -----------------------------------------------------------------------------------------------------

    async def _place(self, waiter: Ticket) -> Place:
        if self._closed or self._draining:
            raise Draining("The gateway is stopping")
        if (given_up := self._fleet.given_up()) is not None:
            raise given_up
        self._line.join(waiter)
        try:
            self._act()
            return await self._line.wait(waiter, lambda: self._fleet.is_starting)
        except (Overdue, asyncio.CancelledError) as error:
            if (place := self._line.leave(waiter)) is not None:
                self._give_back(place)
            if isinstance(error, Overdue):
                places = self._expected and self._expected * self._limits().max_servers
                cause = waiter.refusal or self._fleet.error
                raise queue_timeout(self._settings, self._fleet, waiter.refusal, places) from cause
            raise

    def _limits(self) -> Limits:
        pool, is_ours = self._settings.pool, self._fleet.is_ours
        return Limits(
            max_servers=pool.max_servers if is_ours else 1,
            expected_capacity=self._expected,
            launches_from=self._fleet.launches_from,
            warm_servers=pool.warm_servers if is_ours and not self._draining else 0,
            warm_sessions=0 if self._draining else pool.warm_sessions,
            idle_s=pool.idle_server_s if is_ours else math.inf,
        )

    def _act(self) -> None:
        """Ask `decide` and do what it says. Called after every event."""
        if self._closed:
            return
        now = asyncio.get_running_loop().time()
        servers = self._fleet.servers
        for action in decide([server.view(now) for server in servers.values()], len(self._line), self._limits(), now):
            match action:
                case Lease(server=key):
                    self._lease(servers[key])
                case Launch():
                    self._fleet.launch()
                case Evict():
                    self._on_scarcity()
                case Warm(server=key):
                    self._warm(servers[key])
                case Retire(server=key):
                    self._fleet.retire(servers[key])
        self._look_after_idle()

    def _lease(self, server: Server) -> None:
        warm = server.warm[0] if server.warm else None
        if self._line.serve(Place(server, warm)):
            if warm is None:
                server.leased += 1
            else:
                server.warm.remove(warm)
            self._count(server)

    def _give_back(self, place: Place) -> None:
        if place.warm is None:
            self._free(place.server)
        elif not place.warm.released:
            place.server.warm.append(place.warm)
            self._count(place.server)
            self._act()

    def _free(self, server: Server) -> None:
        server.leased -= 1
        self._count(server)
        self._act()

    def _count(self, server: Server) -> None:
        server.took(asyncio.get_running_loop().time())

    def _look_after_idle(self) -> None:
        """Servers that are idle for too long are stopped. One timer for all: agents come and go more often than servers."""
        if self._idle_timer is not None or not self._fleet.is_ours:
            return
        loop, idle_s = asyncio.get_running_loop(), self._settings.pool.idle_server_s
        left = [server.idle_since + idle_s - loop.time() for server in self._fleet.servers.values() if server.is_idle]
        if left:  # what is kept warm idles on beyond its time
            self._idle_timer = loop.call_later(min((one for one in left if one > 0), default=idle_s) + 0.01, self._has_idled)

    def _has_idled(self) -> None:
        self._idle_timer = None
        self._act()

    # --- sessions ---------------------------------------------------------------------------------------------------

    async def _open_on(
        self, place: Place, kind: Kind, data: Mapping[str, Any], reply_timeout_s: float
    ) -> tuple[LeasedSession, str | bytes]:
        server, leased = place.server, place.warm
        try:
            if leased is None:
                leased = await self._connected(server)
            leased.due = asyncio.get_running_loop().time() + reply_timeout_s
            raw = await leased.session.exchange(kind, data, reply_timeout_s)
            self._works(server, leased, is_watched=place.warm is not None)
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

    async def _connected(self, server: Server) -> LeasedSession:
        """A connection to the server, on a place that was taken for it, and stays taken whatever connecting raises."""
        if server.running is None:
            raise ServerUnreachable(self._settings.name, "the server just stopped")
        connect_s = self._settings.timeouts.connect_s
        session = await Connection.open(server.running.base_url, connect_timeout_s=connect_s, dumps=encode_request)
        leased = LeasedSession(session, lambda: self._released(server, leased))
        server.sessions.add(leased)
        return leased

    def _released(self, server: Server, leased: LeasedSession) -> None:
        server.sessions.discard(leased)
        if leased in server.warm:
            server.warm.remove(leased)
        self._free(server)

    def _works(self, server: Server, leased: LeasedSession, *, is_watched: bool) -> None:
        self._fleet.works()
        if self._has_broken:
            self._has_broken = False
            self._on_restart()
        if not is_watched:
            self._tasks.spawn(self._until_broken(server, leased), "watch over an environment session")
        if self._settings.pool.warm_sessions:
            self._act()  # the next one may be made warm

    async def _until_broken(self, server: Server, leased: LeasedSession) -> None:
        """A connection that breaks frees its place at once, not when its lane is used again. And a server that was restarted
        may have more room than it had: what was learnt of it is forgotten."""
        await leased.session.wait_closed()
        if not leased.released:
            self._has_broken = not self._fleet.is_ours
            if self._settings.pool.sessions_per_server is None:
                server.capacity, server.learnt_at, self._expected = None, math.inf, None
            await leased.release()

    def _learn(self, server: Server, refusal: CapacityReached) -> None:
        if refusal.max_sessions:  # a server that allows none is no server to learn from
            server.capacity, server.learnt_at = refusal.max_sessions, asyncio.get_running_loop().time()
            if self._settings.pool.sessions_per_server is None:
                self._expected = refusal.max_sessions
        if server.capacity is None or server.leased - 1 < server.capacity:  # without the one that was refused
            loop = asyncio.get_running_loop()
            server.rests_until = loop.time() + REST_S
            loop.call_later(REST_S + 0.01, self._act)

    # --- warm sessions ----------------------------------------------------------------------------------------------

    def _warm(self, server: Server) -> None:
        server.leased += 1
        server.warming += 1
        self._tasks.spawn(self._warmed(server), f"warm session on server {server.key}")

    async def _warmed(self, server: Server) -> None:
        """Connect a session for whoever comes next. An unused one is replaced after a while: servers end idle sessions in
        silence, and go on answering on an environment that was closed."""
        loop, leased = asyncio.get_running_loop(), None
        try:
            leased = await self._connected(server)
        except OpenEnvError as error:
            log.warning("no warm session of %s: %s", self._settings.name, error)
        finally:
            server.warming -= 1
            if leased is None:
                self._pause_warming(server)
                self._free(server)
        if leased is None:
            return
        server.warm.append(leased)
        self._act()
        cooling = loop.call_later(WARM_FOR_S, self._cool, server, leased)
        try:
            await leased.session.wait_closed()
        finally:
            cooling.cancel()
        if isinstance(refusal := leased.session.ended_by, CapacityReached):
            self._learn(server, refusal)
        if leased in server.warm:
            self._pause_warming(server)
        await self._until_broken(server, leased)

    def _cool(self, server: Server, leased: LeasedSession) -> None:
        if leased in server.warm:
            self._tasks.spawn(leased.release(), "end of a warm session")

    def _pause_warming(self, server: Server) -> None:
        loop = asyncio.get_running_loop()
        server.warms_from = loop.time() + WARM_AGAIN_S
        loop.call_later(WARM_AGAIN_S + 0.01, self._act)
