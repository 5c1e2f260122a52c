"""direct.py: messages are handed over as they come, against the library's own server."""

from __future__ import annotations

import asyncio
import re
from base64 import b64encode
from contextlib import suppress
from hashlib import sha1
from itertools import chain, pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from testkit.connections import LONG
from testkit.peer import Talk, peer
from testkit.raw_frames import written
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.frames import Frame, Opcode

from openenv_client.direct import DirectConnection


async def talk(server: ServerConnection) -> None:
    await server.send("at once")
    await server.send(["in ", "three ", "pieces"])
    await server.send(b"bytes")
    async for message in server:
        await server.send(f"heard {message!r}")


async def test_every_message_is_handed_over_whole_and_in_order_also_what_came_before_anybody_listened() -> None:
    async with serve(talk, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with connect(f"ws://127.0.0.1:{port}", create_connection=DirectConnection, proxy=None) as socket:
            assert isinstance(socket, DirectConnection)
            await asyncio.wait_for(await socket.ping(), LONG)  # its answer comes behind all that was sent
            came: asyncio.Queue[bytes] = asyncio.Queue()
            socket.deliver_to(came.put_nowait, 2**20)
            assert [came.get_nowait() for _ in range(came.qsize())] == [b"at once", b"in three pieces", b"bytes"]
            assert socket.send_now(b"one") and socket.send_now("zwei: ä".encode())
            assert await asyncio.wait_for(came.get(), LONG) == b"heard 'one'"
            assert (await asyncio.wait_for(came.get(), LONG)).decode() == "heard 'zwei: ä'"


async def test_nothing_is_sent_on_a_connection_that_has_ended() -> None:
    async with serve(talk, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with connect(f"ws://127.0.0.1:{port}", create_connection=DirectConnection, proxy=None) as socket:
            assert isinstance(socket, DirectConnection)
            await asyncio.wait_for(socket.close(), LONG)
            assert socket.send_now(b"too late") is False


# --- against the library alone, on the same bytes in the same pieces -------------------------------------------------

MOST = 2000
"""Bytes of a message that both accept."""
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455, section 1.3

SMALL = st.binary(max_size=200)
LONGER = st.sampled_from([124, 125, 126, 127, 1000, MOST]).map(lambda size: b"m" * size)
HIDDEN = written(Frame(Opcode.TEXT, b"in a message"))
"""What looks like a frame where it comes by itself, and is none."""
NESTED = st.tuples(SMALL, SMALL).map(HIDDEN.join)
TEXT = (SMALL | LONGER | NESTED).map(lambda data: [Frame(Opcode.TEXT, data)])
"""Any bytes: that they are no UTF-8 is for those to find who decode them."""


@st.composite
def fragmented(draw: st.DrawFn) -> list[Frame]:
    """A message in fragments, often with a ping in between."""
    parts = draw(st.lists(SMALL, min_size=2, max_size=4))
    kind = draw(st.sampled_from([Opcode.TEXT, Opcode.BINARY]))
    found: list[Frame] = []
    for at, part in enumerate(parts):
        found.append(Frame(kind if at == 0 else Opcode.CONT, part, fin=at == len(parts) - 1))
        if draw(st.booleans()):
            found.append(Frame(Opcode.PING, b"alive"))
    return found[: draw(st.integers(1, len(found)))] if draw(st.integers(0, 4)) == 0 else found


ODD = st.sampled_from([
    [Frame(Opcode.TEXT, b"x" * (MOST + 1))],
    [Frame(Opcode.TEXT, b"x" * 1500, fin=False), Frame(Opcode.CONT, b"x" * 1500)],
    [Frame(Opcode.CONT, b"of nothing")],
    [Frame(Opcode.TEXT, b"compressed", rsv1=True)],
    [Frame(Opcode.CLOSE, b"\x03\xe8bye")],
    [Frame(Opcode.CLOSE, b"\x03\xf3")],
    [Frame(Opcode.CLOSE, b"")],
    [Frame(Opcode.PING, b"")],
    [Frame(Opcode.PONG, b"nobody asked")],
    [Frame(Opcode.BINARY, b"\x00\xff")],
])
"""What ends a connection, and what does not."""


@st.composite
def conversation(draw: st.DrawFn) -> list[bytes]:
    """What a server sends behind the handshake's answer: cut anywhere, mostly between frames."""
    groups = draw(st.lists(TEXT | TEXT | fragmented() | ODD, max_size=6))
    masked = draw(st.integers(0, 9)) == 0  # a server that does not know its place
    parts = [written(frame, mask=masked) for group in groups for frame in group]
    ends, at = [0], 0
    for part in parts:
        at += len(part)
        ends.append(at)
    stream = b"".join(parts)
    more = draw(st.lists(st.integers(0, len(stream)), max_size=6))
    hidden = [found.span() for found in re.finditer(re.escape(HIDDEN), stream)]
    likely = [*ends, *chain.from_iterable(hidden)]
    cuts = sorted({*more, *(at for at in likely if draw(st.integers(0, 4)))} | {0, len(stream)})
    return [stream[start:end] for start, end in pairwise(cuts)] or [b""]


def speaking(pieces: list[bytes], cut_head: int) -> Talk:
    """A server that answers the handshake, the first `cut_head` bytes of it by themselves, and says all this. A negative
    `cut_head` sends the first piece with the answer."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        key = next(line[19:] for line in head.split(b"\r\n") if line.lower().startswith(b"sec-websocket-key: "))
        accept = b64encode(sha1(key + GUID).digest())
        answer = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "
        answer += accept + b"\r\n\r\n"
        begin = [answer + pieces[0], *pieces[1:]] if cut_head < 0 else [answer[:cut_head], answer[cut_head:], *pieces]
        for piece in begin:
            writer.write(piece)
            for _ in range(4):  # the client, on the same event loop, reads it by itself
                await asyncio.sleep(0)
        writer.write_eof()
        await asyncio.wait_for(reader.read(), LONG)

    return talk


async def heard(url: str, *, direct: bool, late: bool) -> tuple[list[bytes], tuple[int | None, int | None]]:
    """The messages that came, and the codes of the close frames that went and came. `late`: nobody listens at once."""
    came: list[bytes] = []
    kind = DirectConnection if direct else ClientConnection
    socket = await connect(url, create_connection=kind, proxy=None, compression=None, max_size=MOST, close_timeout=LONG)
    for _ in range(40 * late):
        await asyncio.sleep(0)
    if isinstance(socket, DirectConnection):
        socket.deliver_to(came.append, MOST)
        await socket.wait_closed()
    else:
        with suppress(ConnectionClosed):
            while True:
                came.append(await asyncio.wait_for(socket.recv(decode=False), LONG))
    sent, received = socket.protocol.close_sent, socket.protocol.close_rcvd
    return came, (None if sent is None else sent.code, None if received is None else received.code)


def text(data: bytes) -> bytes:
    return written(Frame(Opcode.TEXT, data))


GOODBYE = written(Frame(Opcode.CLOSE, b"\x03\xe8bye"))


@settings(max_examples=150)
@given(conversation(), st.sampled_from([-1, -1, 0, 0, 0, 5, 40]), st.booleans())
@example([text(b"one"), GOODBYE, text(b"after the end")], 0, False)
@example([text(b"longer " + HIDDEN)[:9], HIDDEN, text(b"two")], 0, False)
@example([text(b"longer " + HIDDEN)[:9], HIDDEN, text(b"two")], -1, False)
@example([written(Frame(Opcode.TEXT, b"begun", fin=False)), text(b"no fragment"), text(b"two")], 0, False)
@example([text(b"x" * (MOST + 1))], 0, True)
def test_whatever_comes_and_however_it_is_cut_the_messages_are_those_that_the_library_reads(
    pieces: list[bytes], cut_head: int, late: bool
) -> None:
    async def compare() -> None:
        async with peer(speaking(pieces, cut_head)) as url:
            found = [await heard(url.replace("http", "ws", 1), direct=direct, late=late) for direct in (True, False)]
            assert found[0] == found[1]

    asyncio.run(compare())


def test_whole_messages_are_really_taken_past_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the comparison would be of the library with itself."""
    seen: list[int] = []
    receive = ClientConnection.data_received

    def noted(self: ClientConnection, data: bytes) -> None:
        seen.append(len(data))
        receive(self, data)

    monkeypatch.setattr(ClientConnection, "data_received", noted)

    async def hear() -> None:
        async with peer(speaking([text(b"one"), text(b"two"), GOODBYE], 0)) as url:
            assert (await heard(url.replace("http", "ws", 1), direct=True, late=False))[0] == [b"one", b"two"]

    asyncio.run(hear())
    assert seen[1:] == [len(GOODBYE)]  # the first is the handshake's answer
