"""The MCP toolset of pydantic-ai, without a model. A result with pictures is shown as its blocks, JSON first."""

from contextlib import asynccontextmanager

import play
from pydantic_ai import BinaryContent, ModelRetry
from pydantic_ai.mcp import MCPToolset


class Player:
    def __init__(self, toolset):
        self._toolset = toolset

    async def tools(self):
        return {tool.name: tool.input_schema for tool in await self._toolset.list_tools()}

    async def call(self, tool, arguments):
        try:
            shown = await self._toolset.direct_call_tool(tool, arguments)
        except ModelRetry as failure:
            return play.Seen(failure=str(failure))
        told, *media = shown if isinstance(shown, list) else [shown]
        return play.Seen(told, [block.media_type for block in media if isinstance(block, BinaryContent)])


@asynccontextmanager
async def connect(url, limit_s):
    async with MCPToolset(url) as toolset:
        yield Player(toolset)


play.main(connect)
