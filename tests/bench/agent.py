"""An MCP client over one keep-alive connection, so thin that it measures the server and not itself. Checks every answer."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

VERSIONS = {"legacy": "2025-11-25", "modern": "2026-07-28"}
"""The revision that is spoken in each era."""

CLIENT = {"name": "bench", "version": "1"}
LIMIT = 64 * 2**20
"""Bytes of the longest header block that a reader may buffer; bodies are read by their length."""


class WrongAnswer(RuntimeError):
    """The server answered, but not with what was asked for. The message holds the answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP response: `headers` by lower-case name, the whole body."""

    status: int
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class Agent:
    """One agent on one connection. `session` is its MCP session's id, `handle` its lane's in the modern era."""

    url: str
    era: str = "legacy"
    token: str | None = None
    session: str | None = None
    handle: str | None = None
    _id: int = 0
    _streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = field(default=None, repr=False)

    async def connect(self) -> None:
        """Raises OSError."""
        parts = urlsplit(self.url)
        self._streams = await asyncio.open_connection(parts.hostname, parts.port or 80, limit=LIMIT)

    async def initialize(self) -> None:
        """The handshake; the modern era has none, so there it does nothing."""
        if self.era == "legacy":
            hello = {"protocolVersion": VERSIONS["legacy"], "capabilities": {}, "clientInfo": CLIENT}
            await self.ask("initialize", hello)

    async def initialized(self) -> None:
        """The notification that ends the handshake. Raises WrongAnswer unless it is taken (the floor answers 200)."""
        if self.era == "legacy":
            answer = await self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
            if answer.status not in (200, 202):
                raise WrongAnswer(f"notifications/initialized: HTTP {answer.status} {answer.body[:300]!r}")

    async def reset(self) -> None:
        """Start an episode; in the modern era the lane's handle comes with it."""
        result = await self.call("reset", {})
        self.handle = (result.get("structuredContent") or {}).get("session_id")

    async def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The result of one tools/call, never an `isError` one. Raises as `ask` does."""
        if self.handle is not None and self.era == "modern":
            arguments = {**arguments, "session_id": self.handle}
        result = await self.ask("tools/call", {"name": tool, "arguments": arguments})
        if result.get("isError"):
            raise WrongAnswer(f"{tool} failed: {json.dumps(result)[:300]}")
        return result

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The result of one request. Raises WrongAnswer for anything else, OSError or EOFError for a lost connection."""
        self._id += 1
        if self.era == "modern":
            params = {**params, "_meta": _envelope()}
        answer = await self.post({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params})
        message = json.loads(answer.body) if answer.body else {}
        if answer.status != 200 or "result" not in message or message.get("id") != self._id:
            raise WrongAnswer(f"{method}: HTTP {answer.status} {answer.body[:300]!r}")
        self.session = answer.headers.get("mcp-session-id", self.session)
        result: dict[str, Any] = message["result"]
        return result

    async def post(self, message: dict[str, Any]) -> Answer:
        """POST one message; the response, whatever it says."""
        headers = ["Content-Type: application/json", "Accept: application/json, text/event-stream"]
        if message["method"] != "initialize":
            headers.append(f"MCP-Protocol-Version: {VERSIONS[self.era]}")
        if self.era == "modern":
            headers.append(f"Mcp-Method: {message['method']}")
            if message["method"] == "tools/call":
                headers.append(f"Mcp-Name: {message['params']['name']}")
        return await self.http("POST", json.dumps(message).encode(), headers)

    async def http(self, verb: str, body: bytes = b"", headers: list[str] | None = None) -> Answer:
        """One HTTP request on the URL with the session's and the token's headers; the response."""
        reader, writer = self._open()
        writer.write(self._head(verb, [f"Content-Length: {len(body)}", *(headers or [])]) + body)
        return await _read(reader, has_body=verb != "HEAD")

    async def open_stream(self) -> bool:
        """GET for events of the server's own. Whether it is offered; then the connection is a stream from now on."""
        reader, writer = self._open()
        headers = [f"MCP-Protocol-Version: {VERSIONS[self.era]}", "Accept: text/event-stream"]
        writer.write(self._head("GET", headers))
        answer = await _read(reader, has_body=False)
        if answer.status == 200:
            return True
        await reader.readexactly(int(answer.headers.get("content-length", 0)))
        return False

    async def close(self) -> None:
        """Close the connection without a DELETE: the session is left to expire."""
        _, writer = self._open()
        writer.close()
        await writer.wait_closed()

    def _head(self, verb: str, headers: list[str]) -> bytes:
        parts = urlsplit(self.url)
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        lines = [f"{verb} {target} HTTP/1.1", f"Host: {parts.netloc}", *headers]
        lines += [f"Mcp-Session-Id: {self.session}"] if self.session else []
        lines += [f"Authorization: Bearer {self.token}"] if self.token else []
        return "\r\n".join(lines).encode() + b"\r\n\r\n"

    def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        assert self._streams is not None, "connect() comes first"
        return self._streams


def _envelope() -> dict[str, Any]:
    prefix = "io.modelcontextprotocol"
    return {
        f"{prefix}/protocolVersion": VERSIONS["modern"],
        f"{prefix}/clientCapabilities": {},
        f"{prefix}/clientInfo": CLIENT,
    }


async def _read(reader: asyncio.StreamReader, *, has_body: bool) -> Answer:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    body = b""
    if has_body and "content-length" in headers:
        body = await reader.readexactly(int(headers["content-length"]))
    elif has_body and headers.get("transfer-encoding") == "chunked":
        raise WrongAnswer(f"an answer in chunks, where one JSON body is expected: {headers}")
    return Answer(int(head[0].split()[1]), headers, body)
