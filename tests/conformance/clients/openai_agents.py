"""The MCP server of openai-agents, without a model. Gives up a call by itself, by default after 5 s."""

from contextlib import asynccontextmanager

import play
from agents.mcp import MCPServerStreamableHttp


class Player:
    def __init__(self, server):
        self._server = server

    async def tools(self):
        return {tool.name: tool.input_schema for tool in await self._server.list_tools()}

    async def call(self, tool, arguments):
        return play.seen(await self._server.call_tool(tool, arguments))


@asynccontextmanager
async def connect(url, limit_s):
    limit = {} if limit_s is None else {"client_session_timeout_seconds": limit_s}
    async with MCPServerStreamableHttp({"url": url}, **limit) as server:
        yield Player(server)


play.main(connect)
