"""What stands in front of the whole application: Host, Origin and token are checked before anything else looks at a request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from openenv_gateway.mcp import jsonrpc
from openenv_gateway.mcp.jsonrpc import RpcError
from openenv_gateway.transports.access import PRINCIPAL, Access
from openenv_gateway.transports.guards import HostGuard, Refused

POLICY_VIOLATION = 1008
"""The WebSocket close code of a connection whose token no longer counts (RFC 6455, section 7.4.1)."""


class Gate:
    """Lets a request through to the application when its Host, Origin and token may.

    Who calls is in the scope from then on, as PRINCIPAL. A WebSocket is asked again at every message: it lasts, and a token
    that was withdrawn meanwhile must end it. HTTP requests for a path in `places` go straight to what serves it, which spares
    them the application's search; for the rest, and for WebSockets, `app` decides.
    """

    def __init__(
        self, app: ASGIApp, guard: HostGuard, access: Access, places: Mapping[str, ASGIApp] = MappingProxyType({})
    ) -> None:
        self._app, self._guard, self._access, self._places = app, guard, access, places

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        asked = _Asked.of(scope["headers"])
        try:
            self._guard.check(asked.hosts, asked.origins)
            scope[PRINCIPAL] = self._access.admit(scope["path"], asked.credentials)
        except Refused as refused:
            await _refuse(refused, scope, receive, send)
            return
        if scope["type"] == "http":
            await self._places.get(scope["path"], self._app)(scope, receive, send)
            return
        await self._app(scope, self._asking_again(scope["path"], asked.credentials, receive, send), send)

    def _asking_again(self, path: str, credentials: list[bytes], receive: Receive, send: Send) -> Receive:
        async def checked() -> Message:
            message = await receive()
            try:
                self._access.admit(path, credentials)
            except Refused as refused:
                await send({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": refused.message})
                return {"type": "websocket.disconnect", "code": POLICY_VIOLATION}
            return message

        return checked


@dataclass(slots=True)
class _Asked:
    """The headers that decide whether a request may pass, each as often as it came."""

    hosts: list[str] = field(default_factory=list)
    origins: list[str] = field(default_factory=list)
    credentials: list[bytes] = field(default_factory=list)

    @classmethod
    def of(cls, headers: Iterable[tuple[bytes, bytes]]) -> _Asked:
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
