"""An agent that speaks MCP over HTTP by hand, in either era, and shows everything."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import mcp_types
from jsonschema import Draft202012Validator

from openenv_gateway_schemas import load

MODERN = "2026-07-28"
META = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}
RESULTS = Draft202012Validator(load("tool_result"))
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something inside the gateway that no event tells."""
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


class Agent:
    """A JSON-RPC client that shows everything."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.http = httpx.AsyncClient(trust_env=False)
        self.headers: dict[str, str] = {}
        self._id = 0

    async def __aenter__(self) -> Agent:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.http.aclose()

    async def post(self, method: str, params: dict[str, Any] | None = None, **headers: str | None) -> httpx.Response:
        """One request. Headers as keyword arguments with `_` for `-`; None leaves one out."""
        self._id += 1
        message = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params or {}}
        given = {"accept": "application/json, text/event-stream", **self.headers}
        given |= {name.replace("_", "-"): value for name, value in headers.items() if value is not None}
        given = {name: value for name, value in given.items() if headers.get(name.replace("-", "_"), "") is not None}
        return await self.http.post(self.url, json=message, headers=given)

    async def initialize(self, version: str = "2025-11-25") -> str:
        response = await self.post("initialize", {**HELLO, "protocolVersion": version})
        assert response.status_code == 200, response.text
        self.headers["mcp-session-id"] = response.headers["mcp-session-id"]
        self.headers["mcp-protocol-version"] = response.json()["result"]["protocolVersion"]
        return self.headers["mcp-session-id"]

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The result of one tools/call in the handshake era."""
        response = await self.post("tools/call", {"name": tool, "arguments": arguments})
        assert response.status_code == 200, response.text
        result: dict[str, Any] = response.json()["result"]
        mcp_types.CallToolResult.model_validate(result)
        if "structuredContent" in result:
            RESULTS.validate(result["structuredContent"])
        return result

    async def modern(self, method: str, params: dict[str, Any] | None = None, /, **headers: str | None) -> httpx.Response:
        """One request of revision 2026-07-28."""
        params = {**(params or {}), "_meta": {**META, **(params or {}).get("_meta", {})}}
        named = {"mcp_name": params["name"]} if method == "tools/call" else {}
        routing: dict[str, str | None] = {"mcp_protocol_version": MODERN, "mcp_method": method, **named, **headers}
        return await self.post(method, params, **routing)


def code_of(result: dict[str, Any]) -> str:
    assert result["isError"] is True
    assert "structuredContent" not in result
    code: str = result["_meta"]["openenv/error"]["code"]
    assert result["content"][0]["text"].startswith(code)
    return code
