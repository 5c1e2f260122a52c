"""A TCP relay in front of a server, that notes which paths are asked for and can drop WebSocket pings, as some tunnels do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

_PING = 9


class Relay:
    """`url` is its base URL; `paths` are the request lines' paths of all its connections, in order."""

    def __init__(self, target: str, drop_pings: bool) -> None:
        parts = urlsplit(target)
        self._host, self._port = parts.hostname, parts.port
        self._drop_pings = drop_pings
        self.paths: list[str] = []
        self.dropped = 0
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        upstream_reader, upstream_writer = await asyncio.open_connection(self._host, self._port)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            self.paths.append(head.split(b" ", 2)[1].decode())
            upstream_writer.write(head)
            ways = [self._forward(reader, upstream_writer), self._copy(upstream_reader, writer)]
            tasks = [asyncio.ensure_future(way) for way in ways]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        except (asyncio.IncompleteReadError, ConnectionError):
            return  # the client left before it asked for anything
        finally:
            for each in (writer, upstream_writer):
                each.close()
                with suppress(ConnectionError):
                    await each.wait_closed()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._drop_pings:
            return await self._copy(reader, writer)
        while True:
            frame, opcode = await _frame(reader)
            if opcode == _PING:
                self.dropped += 1
            else:
                writer.write(frame)


async def _frame(reader: asyncio.StreamReader) -> tuple[bytes, int]:
    """One WebSocket frame of a client, which is always masked (RFC 6455, 5.2), and its opcode."""
    head = await reader.readexactly(2)
    length = head[1] & 0x7F
    more = await reader.readexactly({126: 2, 127: 8}.get(length, 0))
    size = int.from_bytes(more, "big") if more else length
    return head + more + await reader.readexactly(4 + size), head[0] & 0x0F


@asynccontextmanager
async def relayed(target: str, *, drop_pings: bool = False) -> AsyncIterator[Relay]:
    """A relay in front of the server at the base URL `target`."""
    relay = Relay(target, drop_pings)
    server = await asyncio.start_server(relay.serve, "127.0.0.1", 0)
    relay.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield relay
    finally:
        server.close()
        await server.wait_closed()
