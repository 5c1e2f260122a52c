"""HTTP by hand: bytes in the pieces that a test chooses, and the responses as the bytes say they are."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httptools

LONG_S = 5.0
"""Seconds that no response in a test that works ever takes."""


@dataclass(frozen=True)
class Answer:
    """One response. `fields`: its headers, sorted, but for the date. `is_complete`: its end came."""

    status: int = 0
    fields: tuple[tuple[bytes, bytes], ...] = ()
    body: bytes = b""
    is_complete: bool = False

    def header(self, name: bytes) -> bytes | None:
        """The header's value, None without one."""
        return dict(self.fields).get(name)


@dataclass
class _Coming:
    """A response on its way."""

    status: int = 0
    fields: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: bytearray = field(default_factory=bytearray)
    is_complete: bool = False


class _Parsed:
    """What the parser tells."""

    def __init__(self) -> None:
        self.coming: list[_Coming] = []
        self.complete = 0
        self.parser = httptools.HttpResponseParser(self)

    def on_message_begin(self) -> None:
        self.coming.append(_Coming())

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() != b"date":
            self.coming[-1].fields.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self.coming[-1].status = self.parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        self.coming[-1].body += body

    def on_message_complete(self) -> None:
        self.coming[-1].is_complete = True
        self.complete += self.coming[-1].status >= 200


class RawClient:
    """One connection. What came is in `answers` and, as it came, in `received`; `is_ended`: the server has closed."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.received = bytearray()
        self.is_ended = False
        self._reader, self.writer = reader, writer
        self._parsed = _Parsed()

    @property
    def answers(self) -> list[Answer]:
        """The responses so far, interim ones too."""
        return [
            Answer(one.status, tuple(sorted(one.fields)), bytes(one.body), one.is_complete) for one in self._parsed.coming
        ]

    @property
    def complete(self) -> int:
        """How many final responses have come whole."""
        return self._parsed.complete

    async def send(self, pieces: Iterable[bytes]) -> None:
        """Send each piece so that the server, on the same event loop, reads it by itself."""
        for piece in pieces:
            if piece and not self.writer.is_closing():
                self.writer.write(piece)
            for _ in range(3):
                await asyncio.sleep(0)

    async def until(self, count: int, quiet_s: float = LONG_S) -> None:
        """Read until so many final responses have come whole, the server has closed, or nothing came for `quiet_s`."""
        while self.complete < count and not self.is_ended:
            try:
                await self._read(quiet_s)
            except TimeoutError:
                return

    async def until_end(self, quiet_s: float = LONG_S) -> None:
        """Read until the server has closed. Raises TimeoutError when nothing came for `quiet_s`."""
        while not self.is_ended:
            await self._read(quiet_s)

    async def until_text(self, text: bytes) -> None:
        """Read until the text came. Raises TimeoutError when nothing came for a long time."""
        while text not in self.received:
            assert not self.is_ended, bytes(self.received)
            await self._read(LONG_S)

    async def ask(self, data: bytes) -> Answer:
        """The one response to one request that is sent in one piece."""
        before = self.complete
        await self.send([data])
        await self.until(before + 1)
        assert self.complete == before + 1, self.received[-500:]
        return self.answers[-1]

    async def _read(self, quiet_s: float) -> None:
        try:
            data = await asyncio.wait_for(self._reader.read(2**16), quiet_s)
        except ConnectionError:
            data = b""
        self.is_ended = not data
        self.received += data
        if data:
            self._parsed.parser.feed_data(data)


@asynccontextmanager
async def raw_client(port: int) -> AsyncIterator[RawClient]:
    """A connection to 127.0.0.1, closed at the end of the block."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    client = RawClient(reader, writer)
    try:
        yield client
    finally:
        writer.close()
        try:
            await writer.wait_closed()
        except ConnectionError:
            client.is_ended = True


def post(body: bytes, *lines: str, target: str = "/mcp") -> bytes:
    """A POST of a JSON body as a plain client writes it, with these header lines more."""
    head = [
        f"POST {target} HTTP/1.1",
        "Host: 127.0.0.1",
        "Accept: application/json, text/event-stream",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        *lines,
    ]
    return "\r\n".join([*head, "", ""]).encode("latin-1") + body


RANDOM = re.compile(rb"[0-9a-f]{16}|[A-Za-z0-9_-]{32}")
"""Episodes and handles, which differ from gateway to gateway."""
