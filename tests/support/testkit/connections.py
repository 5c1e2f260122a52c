"""Our own connection to a scripted server, closed at the end of the block."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from openenv_client.connection import Connection
from testkit.scripted import ScriptedServer

LONG = 5.0
"""Seconds that nothing in a test that works ever takes."""


@asynccontextmanager
async def connected(server: ScriptedServer, **options: Any) -> AsyncIterator[Connection]:
    """A connection to the server; `options` are those of Connection.open."""
    connection = await Connection.open(server.url, **options)
    try:
        yield connection
    finally:
        await connection.close()
