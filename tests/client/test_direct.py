"""direct.py: messages are handed over as they come, against the library's own server."""

from __future__ import annotations

import asyncio

from testkit.connections import LONG
from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve

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
