"""An HTTP relay in front of a server, that notes every request whole and can answer some of them itself.

    async with http_relay(served.base_url, answer=lambda request: None) as relay:   # None: as the server answers
        ...
        assert [request.rpc for request in relay.requests] == ["server/discover", "tools/list"]
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Request:
    """One request; names of headers are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def message(self) -> dict[str, Any]:
        """The JSON-RPC message in it, empty if there is none."""
        return json.loads(self.body) if self.body else {}

    @property
    def rpc(self) -> str:
        """Its JSON-RPC method; the HTTP method of a request without a body."""
        return str(self.message.get("method", self.method))


Answer = Callable[[Request], bytes | None]


def response(status: int, body: object = None, headers: str = "", kind: str = "application/json") -> bytes:
    """A whole HTTP response; `body` are bytes, or a value to be written as JSON."""
    raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    fields = f"Connection: close\r\nContent-Type: {kind}\r\nContent-Length: {len(raw)}\r\n{headers}"
    return f"HTTP/1.1 {status} Status\r\n{fields}\r\n".encode() + raw


def rpc_error(request: Request, code: int, message: str, status: int = 200, data: object = None) -> bytes:
    """A JSON-RPC error as the answer to a request."""
    error = {"code": code, "message": message, **({} if data is None else {"data": data})}
    return response(status, {"jsonrpc": "2.0", "id": request.message.get("id"), "error": error})


def rpc_result(request: Request, result: object, headers: str = "") -> bytes:
    """A JSON-RPC result as the answer to a request."""
    return response(200, {"jsonrpc": "2.0", "id": request.message.get("id"), "result": result}, headers)


class HttpRelay:
    """`url` is its base URL, `requests` what came, in order. One request a connection. Leaves out of `answer` what the server
    is to answer; b"" drops the connection without an answer."""

    def __init__(self, target: str | None, answer: Answer) -> None:
        self._target = None if target is None else urlsplit(target)
        self.answer = answer
        self.requests: list[Request] = []
        self.url = ""
        self._may_pass = asyncio.Event()
        self._may_pass.set()

    def hold(self) -> None:
        """Let requests come, and neither forward nor answer them until `release`."""
        self._may_pass.clear()

    def release(self) -> None:
        """Go on with what was held."""
        self._may_pass.set()

    @property
    def rpcs(self) -> list[str]:
        """The methods of all requests."""
        return [request.rpc for request in self.requests]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            request = await _read(head, reader)
            self.requests.append(request)
            await self._may_pass.wait()
            answered = self.answer(request)
            if answered is None:
                await self._forward(head, request.body, writer)
            else:
                writer.write(answered)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            return  # the client left, as it may
        finally:
            writer.close()

    async def _forward(self, head: bytes, body: bytes, writer: asyncio.StreamWriter) -> None:
        assert self._target is not None, "without a server everything is to be answered"
        upstream, to_upstream = await asyncio.open_connection(self._target.hostname, self._target.port)
        try:
            lines = [line for line in head.split(b"\r\n") if line and not line.lower().startswith(b"connection:")]
            to_upstream.write(b"\r\n".join([*lines, b"Connection: close", b"", b""]) + body)
            while data := await upstream.read(65536):
                writer.write(data)
        finally:
            to_upstream.close()


async def _read(head: bytes, reader: asyncio.StreamReader) -> Request:
    start, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    method, path, _ = start.split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(method, path, headers, body)


@asynccontextmanager
async def http_relay(target: str | None = None, answer: Answer = lambda request: None) -> AsyncIterator[HttpRelay]:
    """A relay in front of the server at the base URL `target`, or one that answers everything itself."""
    relay = HttpRelay(target, answer)
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await relay.serve(reader, writer)
        finally:
            tasks.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    relay.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield relay
        for task in tuple(tasks):
            task.cancel()
        if tasks:
            await asyncio.wait(set(tasks), timeout=5)
