"""Agents: the official MCP clients behind one small face, and on top of it what a model does with the tools.

    async with agents.connected("mcp-2.3-auto", url) as agent:
        await agent.reset(seed=1)
        await agent.call("step", amount=3)
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Literal, Protocol

import httpx2
from mcp.client import Transport
from mcp.client.streamable_http import streamable_http_client

from mcp import Client, MCPError, StdioServerParameters
from testkit import mcp_1
from testkit.mcp_1 import Refused

MCP_2_AUTO, MCP_2_LEGACY, MCP_2_MODERN, MCP_1 = "mcp-2.3-auto", "mcp-2.3-legacy", "mcp-2.3-2026-07-28", "mcp-1.30"
KINDS: Final = (MCP_2_AUTO, MCP_2_LEGACY, MCP_2_MODERN, MCP_1)
"""Every way in which an official client connects. `mcp-1.30/2025-03-26` asks for an older revision."""
HANDSHAKE: Final = (MCP_2_LEGACY, MCP_1)

ANSWER_TIMEOUT_S: Final = 60.0
_MODES: Final[Mapping[str, Literal["auto", "legacy", "2026-07-28"]]] = {
    MCP_2_AUTO: "auto",
    MCP_2_LEGACY: "legacy",
    MCP_2_MODERN: "2026-07-28",
}

__all__ = ["HANDSHAKE", "KINDS", "MCP_1", "MCP_2_AUTO", "MCP_2_LEGACY", "MCP_2_MODERN", "Agent", "Refused", "connected", "told"]

Target = str | Sequence[str]
"""The URL of an MCP endpoint, or the command of a stdio server."""


class McpClient(Protocol):
    """What the official clients have in common. Results are as on the wire."""

    async def list_tools(self) -> list[dict[str, Any]]: ...
    async def call_tool(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]: ...


class Agent:
    """A client and the handle that its tools may ask for: given by one result, passed on with every later call."""

    def __init__(self, client: McpClient, revision: str) -> None:
        self._client, self.revision = client, revision
        self.handle: str | None = None
        self._needs_handle: frozenset[str] = frozenset()
        self._listed = False

    async def tools(self) -> dict[str, dict[str, Any]]:
        """The tools by name."""
        listed = await self._client.list_tools()
        self._needs_handle = frozenset(
            tool["name"] for tool in listed if "session_id" in tool["inputSchema"].get("required", ())
        )
        self._listed = True
        return {tool["name"]: tool for tool in listed}

    async def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """The result of one call, whatever it is. Raises Refused for a JSON-RPC error."""
        if not self._listed:
            await self.tools()
        if tool in self._needs_handle and self.handle is not None:
            arguments = {"session_id": self.handle, **arguments}
        result = await self._client.call_tool(tool, arguments)
        self.handle = told(result).get("session_id", self.handle)
        return result

    async def play(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """What the agent reads of one call that must succeed: {"observation", "reward", "done", …}."""
        result = await self.call(tool, **arguments)
        assert not result.get("isError"), result["content"]
        return told(result)

    async def reset(self, **arguments: Any) -> dict[str, Any]:
        return await self.play("reset", **arguments)

    async def fail(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """The error data of one call that must fail, which its text must tell as well."""
        result = await self.call(tool, **arguments)
        assert result.get("isError"), result
        error: dict[str, Any] = result["_meta"]["openenv/error"]
        text = result["content"][0]["text"]
        assert text.startswith(f"{error['code']}: ") and error["cause"] in text and error["next_step"] in text, text
        return error


def told(result: Mapping[str, Any]) -> dict[str, Any]:
    """structuredContent, or (revision 2025-03-26) the JSON in the first text; {} for a failure."""
    if result.get("isError"):
        return {}
    if "structuredContent" in result:
        structured: dict[str, Any] = result["structuredContent"]
        return structured
    parsed: dict[str, Any] = json.loads(result["content"][0]["text"])
    return parsed


@asynccontextmanager
async def connected(
    kind: str, target: Target, env: Mapping[str, str] | None = None, token: str | None = None
) -> AsyncIterator[Agent]:
    """An agent with an official client, closed as its users close it. `env`: variables of a stdio server beyond PATH and HOME;
    `token`: what a URL's server wants.

    Builds the client's virtual environment if need be (venvs.VenvFailed).
    """
    name, _, revision = kind.partition("/")
    aim = _aim(target, env or {}, token)
    async with _mcp_1(aim, revision) if name == MCP_1 else _mcp_2(_MODES[name], aim) as agent:
        yield agent


def _aim(target: Target, env: Mapping[str, str], token: str | None) -> dict[str, Any]:
    """Where to, as plain values."""
    if not isinstance(target, str):
        return {"command": list(target), "env": dict(env)}
    return {"url": target, "headers": {} if token is None else {"Authorization": f"Bearer {token}"}}


class _Mcp2:
    def __init__(self, client: Client) -> None:
        self._client = client

    async def list_tools(self) -> list[dict[str, Any]]:
        tools: list[dict[str, Any]] = []
        cursor: str | None = None
        while True:
            page = await self._client.list_tools(cursor=cursor)
            tools += [_on_wire(tool) for tool in page.tools]
            if (cursor := page.next_cursor) is None:
                return tools

    async def call_tool(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return _on_wire(await self._client.call_tool(tool, dict(arguments)))
        except MCPError as error:
            raise Refused(error.code, error.message, error.data) from error


@asynccontextmanager
async def _mcp_2(
    mode: Literal["auto", "legacy", "2026-07-28"], aim: Mapping[str, Any]
) -> AsyncIterator[Agent]:
    try:
        async with _server(aim) as server, Client(server, mode=mode, read_timeout_seconds=ANSWER_TIMEOUT_S) as client:
            yield Agent(_Mcp2(client), client.protocol_version)
    except BaseExceptionGroup as group:
        raise _innermost(group) from None  # the client wraps in groups what a test raises inside it


@asynccontextmanager
async def _server(aim: Mapping[str, Any]) -> AsyncIterator[str | Transport | StdioServerParameters]:
    """What the client of mcp 2 takes."""
    if "command" in aim:
        program, *arguments = aim["command"]
        yield StdioServerParameters(command=program, args=arguments, env=aim["env"])
    elif not aim["headers"]:
        yield aim["url"]
    else:
        async with httpx2.AsyncClient(headers=aim["headers"], timeout=ANSWER_TIMEOUT_S) as http:
            yield streamable_http_client(aim["url"], http_client=http)


def _innermost(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error = group.exceptions[0]
    return _innermost(error) if isinstance(error, BaseExceptionGroup) and len(group.exceptions) == 1 else error


@asynccontextmanager
async def _mcp_1(aim: Mapping[str, Any], revision: str) -> AsyncIterator[Agent]:
    async with mcp_1.connected({**aim, "revision": revision}) as (client, spoken):
        yield Agent(client, spoken)


def _on_wire(model: Any) -> dict[str, Any]:
    dumped: dict[str, Any] = model.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return dumped
