"""langchain-mcp-adapters: every call is a session of its own, with initialize and DELETE."""

from contextlib import asynccontextmanager

import play
from langchain_mcp_adapters.client import MultiServerMCPClient


class Player:
    def __init__(self, client):
        self._client = client
        self._tools = {}

    async def tools(self):
        self._tools = {tool.name: tool for tool in await self._client.get_tools()}
        return {name: tool.args_schema for name, tool in self._tools.items()}

    async def call(self, tool, arguments):
        message = await self._tools[tool].ainvoke({"type": "tool_call", "id": "1", "name": tool, "args": arguments})
        if message.status == "error":
            return play.Seen(failure=message.text)
        pictures = [block["mime_type"] for block in message.content if block["type"] == "image"]
        return play.Seen(message.artifact["structured_content"], pictures)


@asynccontextmanager
async def connect(url, limit_s):
    yield Player(MultiServerMCPClient({"gateway": {"transport": "streamable_http", "url": url}}))


play.main(connect)
