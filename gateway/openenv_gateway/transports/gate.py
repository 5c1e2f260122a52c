"""What stands in front of the whole application: Host, Origin and token are checked before anything else looks at a request."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from openenv_gateway.mcp import jsonrpc
from openenv_gateway.mcp.jsonrpc import RpcError
from openenv_gateway.transports.access import PRINCIPAL, Access
from openenv_gateway.transports.guards import HostGuard, Refused
from openenv_gateway.transports.tokens import Principal
from openenv_gateway.transports.withdrawal import Withdrawals

log = logging.getLogger(__name__)

POLICY_VIOLATION = 1008
"""The WebSocket close code of a connection whose token no longer counts (RFC 6455, section 7.4.1)."""


class Gate:
    """Lets a request through to the application when its Host, Origin and token may.

    Who calls is in the scope from then on, as PRINCIPAL. A WebSocket lasts, and a token that is withdrawn meanwhile ends it:
    at its next message, and without one soon (see `withdrawal`). HTTP requests for a path in `places` go straight to what
    serves it, which spares them the application's search; for the rest, and for WebSockets, `app` decides.
    """

    def __init__(
        self,
        app: ASGIApp,
        guard: HostGuard,
        access: Access,
        withdrawals: Withdrawals,
        places: Mapping[str, ASGIApp] = MappingProxyType({}),
    ) -> None:
        self._app, self._guard, self._access, self._places = app, guard, access, places
        self._withdrawals = withdrawals

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        asked = Asked.of(scope["headers"])
        try:
            self.check_names(asked)
            scope[PRINCIPAL] = self.admit(scope["path"], asked)
        except Refused as refused:
            await _refuse(refused, scope, receive, send)
            return
        if scope["type"] == "http":
            await self._places.get(scope["path"], self._app)(scope, receive, send)
            return
        socket = _Socket(self._access, scope["path"], asked.credentials, receive, send)
        with self._withdrawals.watched(scope[PRINCIPAL], socket.end):
            await self._app(scope, socket.receive, socket.send)

    def place(self, path: str) -> ASGIApp | None:
        """What serves HTTP requests for `path` directly."""
        return self._places.get(path)

    def check_names(self, asked: Asked) -> None:
        """Raises Refused for a foreign Host or Origin."""
        self._guard.check(asked.hosts, asked.origins)

    @property
    def grants(self) -> object:
        """See Access."""
        return self._access.grants

    def admit(self, path: str, asked: Asked) -> Principal:
        """Who calls. Raises Refused. To be asked again for each request: tokens come and go."""
        return self._access.admit(path, asked.credentials)


class _Socket:
    """A WebSocket that ends when its token no longer counts. What the application sends after that goes nowhere."""

    def __init__(self, access: Access, path: str, credentials: list[bytes], receive: Receive, send: Send) -> None:
        self._access, self._path, self._credentials = access, path, credentials
        self._receive, self._send = receive, send
        self._closing: asyncio.Task[None] | None = None

    async def receive(self) -> Message:
        message = await self._receive()
        try:
            self._access.admit(self._path, self._credentials)
        except Refused as refused:
            self.end(refused.message)
        if self._closing is None:
            return message
        await self._closing
        return {"type": "websocket.disconnect", "code": POLICY_VIOLATION}

    async def send(self, message: Message) -> None:
        if self._closing is None:
            await self._send(message)

    def end(self, reason: str) -> None:
        """Say why, and close. The application learns it when the client has closed too."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close(reason))

    async def _close(self, reason: str) -> None:
        try:
            await self._send({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": reason})
        except OSError as error:  # so servers say that the client is gone
            log.debug("a client left before its connection was closed: %s", error)


@dataclass(slots=True)
class Asked:
    """The headers that decide whether a request may pass, each as often as it came."""

    hosts: list[str] = field(default_factory=list)
    origins: list[str] = field(default_factory=list)
    credentials: list[bytes] = field(default_factory=list)

    @classmethod
    def of(cls, headers: Iterable[tuple[bytes, bytes]]) -> Asked:
        asked = cls()
        for name, value in headers:
            if name == b"host":
                asked.hosts.append(value.decode("latin-1"))
            elif name == b"origin":
                asked.origins.append(value.decode("latin-1"))
            elif name == b"authorization":
                asked.credentials.append(value)
        return asked


async def _refuse(refused: Refused, scope: Scope, receive: Receive, send: Send) -> None:
    """The body is a JSON-RPC error: from other ones MCP clients show their users no text."""
    body = jsonrpc.error_message(None, RpcError(jsonrpc.INVALID_REQUEST, refused.message))
    response = Response(body, refused.status, dict(refused.headers), media_type="application/json")
    await response(scope, receive, send)
