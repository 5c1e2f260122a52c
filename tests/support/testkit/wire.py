"""OpenEnv's /ws spoken by hand: plain JSON objects over a plain WebSocket, so that a test sees what really goes over it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import websockets

REPLY_TIMEOUT_S: Final = 10.0


class Wire:
    """One environment session."""

    def __init__(self, socket: websockets.ClientConnection) -> None:
        self.socket = socket

    async def ask(self, kind: str, data: dict[str, Any] | None = None, timeout_s: float = REPLY_TIMEOUT_S) -> Any:
        """Send one request frame and return the next frame. Raises TimeoutError, websockets.ConnectionClosed."""
        await self.send({"type": kind} if data is None else {"type": kind, "data": data})
        return await self.receive(timeout_s)

    async def send(self, frame: Any) -> None:
        """Send a frame and wait for nothing."""
        await self.socket.send(json.dumps(frame))

    async def receive(self, timeout_s: float = REPLY_TIMEOUT_S) -> Any:
        """The next frame. Raises TimeoutError, websockets.ConnectionClosed."""
        async with asyncio.timeout(timeout_s):
            return json.loads(await self.socket.recv())


@asynccontextmanager
async def session(base_url: str) -> AsyncIterator[Wire]:
    """A WebSocket to a server's /ws, closed when the block is left. Raises websockets.InvalidStatus if it is refused."""
    url = base_url.replace("http", "ws", 1) + "/ws"
    async with websockets.connect(url, ping_interval=None, max_size=None, close_timeout=1, proxy=None) as socket:
        yield Wire(socket)
