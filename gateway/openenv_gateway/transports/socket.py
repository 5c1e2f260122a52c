"""One accepted WebSocket as a stream of messages. Over bare ASGI: no framework between a frame and its answer."""

from __future__ import annotations

import logging
from http import HTTPStatus

import orjson
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

log = logging.getLogger(__name__)

NORMAL = 1000


class Socket:
    """A client's WebSocket. Sending to a client that has left is no error: what matters is that `receive` tells it."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self._open = False

    async def accept(self, subprotocol: str | None = None) -> bool:
        """Take the connection, with `subprotocol` if the client offers it. Returns False when the client has left already."""
        if (await self._receive())["type"] != "websocket.connect":
            return False
        chosen = subprotocol if subprotocol in self._scope.get("subprotocols", ()) else None
        self._open = True
        await self._pass_on({"type": "websocket.accept", "subprotocol": chosen})
        return self._open

    async def deny(self, status: HTTPStatus, message: str) -> None:
        """Answer the handshake with an HTTP error instead of accepting it."""
        body = orjson.dumps({"error": message})
        await Response(body, status, media_type="application/json")(self._scope, self._receive, self._send)

    async def receive(self) -> str | bytes | None:
        """The next message, bytes for a binary one; None when the client has left or the connection was closed."""
        message = await self._receive()
        if message["type"] != "websocket.receive":
            self._open = False
            return None
        text: str | None = message.get("text")
        data: bytes = message.get("bytes") or b""
        return data if text is None else text

    async def send(self, text: bytes) -> None:
        """Send a text message, given in UTF-8."""
        await self._pass_on({"type": "websocket.send", "text": text.decode()})

    async def close(self, code: int = NORMAL, reason: str = "") -> None:
        """Begin to close the connection; twice is fine."""
        await self._pass_on({"type": "websocket.close", "code": code, "reason": reason})
        self._open = False

    async def _pass_on(self, message: dict[str, object]) -> None:
        if not self._open:
            return
        try:
            await self._send(message)
        except OSError as error:  # so servers say that the client is gone
            self._open = False
            log.debug("a client left before it was sent a message: %s", error)
