"""An exchange straight on its connection: no ASGI in between, and one write for a whole response."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Protocol

from starlette.types import Message

from openenv_client.frames import JsonObject
from openenv_gateway.mcp import jsonrpc
from openenv_gateway.transports.exchange import Exchange, Fields
from openenv_gateway.transports.headers import Head
from openenv_gateway.transports.lasting import LastingCalls
from openenv_gateway.transports.tokens import Principal

JOINED = 64 * 2**10
"""Bytes of a body that are copied rather than sent by a call of their own."""


class Line(Protocol):
    """The connection that a response goes out on."""

    def write(self, data: bytes) -> None:
        """Hand over bytes of the response; dropped when the client is gone."""
        ...

    def done(self, exchange: DirectExchange) -> None:
        """The response is complete although the request is still carried out: the connection may take the next one."""
        ...

    async def drain(self) -> None:
        """Wait while the client reads more slowly than it is written to."""
        ...

    @property
    def default_headers(self) -> bytes:
        """The header lines of every response."""
        ...


class DirectExchange(Exchange):
    """One request whose body has come whole. `is_started`: some of the response was sent; `is_complete`: all of it."""

    def __init__(self, head: Head, caller: Principal, line: Line, lasting: LastingCalls) -> None:
        super().__init__(head, caller, lasting)
        self._line = line
        self._left: asyncio.Future[None] | None = None
        self.is_gone = False
        self.is_started = self.is_complete = False

    def leave(self) -> None:
        """The client is gone: nothing can be sent any more."""
        self.is_gone = True
        if self._left is not None and not self._left.done():
            self._left.set_result(None)
        if self.lasting.forget(self):
            self._on_leave()

    async def answer(self, identity: jsonrpc.RequestId, result: JsonObject, headers: Fields = ()) -> None:
        body = jsonrpc.result_message(identity, result)
        if self._is_streaming or headers or not self.head.accepted.json:
            await self.message(200, body, headers)
            return
        self.is_started = self.is_complete = True
        head = b"HTTP/1.1 200 OK\r\n%bcontent-length: %d\r\ncontent-type: application/json\r\n\r\n"
        self._whole(head % (self._line.default_headers, len(body)), body)

    async def respond(self, status: int, body: bytes, kind: str | None = None, headers: Fields = ()) -> None:
        fields = [*headers, *([] if kind is None else [("content-type", kind)]), ("content-length", str(len(body)))]
        self.is_started = self.is_complete = True
        self._whole(self._head_of(status, fields), body)

    def _whole(self, head: bytes, body: bytes) -> None:
        """Send it all: small bodies joined to their head for the sake of one system call, large ones without copying them."""
        if len(body) <= JOINED:
            self._line.write(head + body)
        else:
            self._line.write(head)
            self._line.write(body)

    async def end_stream(self) -> None:
        await super().end_stream()
        self._line.done(self)

    async def receive(self) -> Message:
        """ASGI's receive, for a request whose body was taken: it tells of the client's leaving only."""
        if not (self.is_gone or self.is_complete):
            if self._left is None:
                self._left = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._left)
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """ASGI's send, for event streams: in chunks."""
        if message["type"] == "http.response.start":
            self.is_started = True
            fields = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in message["headers"]]
            self._line.write(self._head_of(message["status"], [*fields, ("transfer-encoding", "chunked")]))
            return
        body: bytes = message["body"]
        self.is_complete = not message.get("more_body", False)
        chunk = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
        self._line.write(chunk + (b"0\r\n\r\n" if self.is_complete else b""))
        await self._line.drain()

    def _head_of(self, status: int, fields: list[tuple[str, str]]) -> bytes:
        lines = b"".join(b"%b: %b\r\n" % (name.encode("latin-1"), value.encode("latin-1")) for name, value in fields)
        phrase = HTTPStatus(status).phrase.encode()
        return b"HTTP/1.1 %d %b\r\n%b%b\r\n" % (status, phrase, self._line.default_headers, lines)
