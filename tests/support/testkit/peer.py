"""A bare TCP server for what no well-behaved server does: silence, garbage, half a handshake."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def peer(talk: Talk) -> AsyncIterator[str]:
    """Run `talk` for each connection that comes, and close the connection after it. Yields the server's http base URL.

    Leaving the block cancels what still talks.
    """
    talking: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        talking.add(task)
        try:
            await talk(reader, writer)
        except ConnectionError:
            return  # the client hung up first, as it may
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        for task in talking:
            task.cancel()
        if talking:
            await asyncio.wait(talking, timeout=5.0)
