"""fastmcp 4's client, as its users have it: revision 2026-07-28, or the handshake where a server has no other."""

from contextlib import asynccontextmanager

import play
from fastmcp import Client


class Player:
    def __init__(self, client):
        self._client = client

    async def tools(self):
        return {tool.name: tool.input_schema for tool in await self._client.list_tools()}

    async def call(self, tool, arguments):
        return play.seen(await self._client.call_tool(tool, arguments, raise_on_error=False))


@asynccontextmanager
async def connect(url, limit_s):
    async with Client(url) as client:
        yield Player(client)


play.main(connect)
