"""Sending an HTTP request so that a cancellation leaves nothing behind.

httpx opens connections by anyio, which forgets a connection that is made in the very moment in which it is cancelled. So a
cancellation that comes while a connection is being made waits for it, though not for long.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

import httpx

from openenv_client.threads import finish

PATIENCE_S: Final = 1.0
_CONNECTING: Final = ("connection.connect_tcp.", "connection.start_tls.")


async def send(client: httpx.AsyncClient, request: httpx.Request) -> httpx.Response:
    """The response, whose body is still to be read; the caller closes it. Raises what httpx raises."""
    idle = asyncio.Event()
    idle.set()

    async def trace(event: str, _: Any) -> None:
        if event.startswith(_CONNECTING):
            idle.clear() if event.endswith(".started") else idle.set()

    request.extensions["trace"] = trace
    sending = asyncio.ensure_future(client.send(request, stream=True))
    try:
        await asyncio.wait({sending})
    except asyncio.CancelledError:
        await finish(_stopped(sending, idle))
        raise
    return sending.result()


async def _stopped(sending: asyncio.Task[httpx.Response], idle: asyncio.Event) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not idle.is_set() and not sending.done() and (left := deadline - time.monotonic()) > 0:
        connected = asyncio.ensure_future(idle.wait())
        await asyncio.wait({connected, sending}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        connected.cancel()
    sending.cancel()  # in the same moment as the look: it may be about to connect again
    await asyncio.wait({sending})
    if not sending.cancelled() and sending.exception() is None:
        await sending.result().aclose()
