"""The MCP sessions of the handshake era: who is there, what runs there, which lane it plays on."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass, field

from openenv_gateway.errors import LaneBusy
from openenv_gateway.mcp.broadcast import Subscription
from openenv_gateway.mcp.inflight import InFlight
from openenv_gateway.mcp.jsonrpc import INVALID_REQUEST, RequestId, RpcError
from openenv_gateway.mcp.mailbox import Mailbox, Posted
from openenv_gateway.mcp.revisions import Revision
from openenv_gateway.sessions.lane import Lane
from openenv_gateway.sessions.phases import Phase
from openenv_gateway.sessions.registry import LaneRegistry


@dataclass(eq=False, slots=True)
class McpSession:
    """One session. `id` has 192 random bits. `in_flight` maps a running request's id to what may cancel it.

    `is_connection`: the session is one connection (stdio, a WebSocket): its lane needs no handle, and it ends with it alone.
    `log_level`: the least urgent level of log messages that its client wants (logging/setLevel); `stream`: its GET stream, if
    one is open; `mailbox`: the answers for which its client may come back, if any call lasted.
    """

    id: str
    principal: str
    revision: Revision
    is_connection: bool = False
    lane: Lane | None = None
    log_level: str | None = None
    stream: Subscription | None = None
    mailbox: Mailbox | None = None
    lanes: set[Lane] = field(default_factory=set)
    in_flight: dict[RequestId, InFlight] = field(default_factory=dict)
    last_used: float = field(default_factory=time.monotonic)

    def adopt(self, lane: Lane) -> None:
        """This session uses `lane` from now on; it becomes the default lane when there is none that is alive."""
        lane.owners.add(self.id)
        lane.lingers_since = None
        self.lanes.add(lane)
        if self.lane is None or self.lane.phase is Phase.CLOSED:
            self.lane = lane

    def begin(self, identity: RequestId, request: InFlight) -> None:
        """A request starts. Raises RpcError when the same id is still in flight: its answers could not be told apart."""
        if identity in self.in_flight:
            raise RpcError(INVALID_REQUEST, f"A request with the id {identity!r} is still running in this session")
        self.in_flight[identity] = request

    def post(self, request: InFlight) -> Posted:
        """Keep the answer to a call that lasts for a client that comes back for it."""
        if self.mailbox is None:
            self.mailbox = Mailbox()
        return self.mailbox.open(request)

    def end(self, identity: RequestId) -> None:
        self.in_flight.pop(identity, None)
        self.last_used = time.monotonic()

    def cancel(self, identity: object) -> bool:
        """`notifications/cancelled`: stop that request. Late cancels of finished requests are normal; they return False."""
        if not isinstance(identity, str | int) or isinstance(identity, bool):  # True == 1
            return False
        request = self.in_flight.get(identity)
        return request.cancel() if request is not None else False


class SessionTable:
    """The sessions of one environment's endpoint. Bounded: beyond `limit` the longest unused without running calls goes."""

    def __init__(self, lanes: LaneRegistry, idle_s: float, limit: int) -> None:
        self._lanes, self._idle_s, self._limit = lanes, idle_s, limit
        self._sessions: OrderedDict[str, McpSession] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def new(self, principal: str, revision: Revision) -> McpSession:
        """A fresh session. Raises LaneBusy when the table is full of sessions with running calls."""
        if len(self._sessions) >= self._limit:
            self._make_room()
        session = McpSession(secrets.token_urlsafe(24), principal, revision)
        self._sessions[session.id] = session
        return session

    def find(self, identity: str, principal: str) -> McpSession | None:
        """The session with that id, None when unknown, expired, or somebody else's (never told apart)."""
        session = self._sessions.get(identity)
        if session is None or session.principal != principal:
            return None
        session.last_used = time.monotonic()
        self._sessions.move_to_end(identity)
        return session

    def end(self, session: McpSession) -> None:
        """The session is over: running calls are given up, its lanes linger."""
        self._sessions.pop(session.id, None)
        if session.stream is not None:
            session.stream.put(None)
        for request in tuple(session.in_flight.values()):
            request.cancel()
        for lane in session.lanes:
            self._lanes.leave(session.id, lane)

    def sweep(self) -> None:
        """End sessions that were idle too long. The table is in order of use, so the sweep stops at the first young one."""
        now = time.monotonic()
        for session in tuple(self._sessions.values()):
            if now - session.last_used < self._idle_s:
                return
            if not session.in_flight and not session.is_connection:
                self.end(session)

    def close(self) -> None:
        for session in tuple(self._sessions.values()):
            self.end(session)

    def _make_room(self) -> None:
        for session in self._sessions.values():
            if not session.in_flight and not session.is_connection:
                self.end(session)
                return
        raise LaneBusy(f"All {self._limit} MCP sessions have calls running")
