"""The official SDK's client, for looking at any MCP endpoint by URL. Imported only where a command needs it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
from mcp.client.streamable_http import streamable_http_client

from mcp import Client, MCPError
from openenv_client.errors import ServerUnreachable
from openenv_client.frames import JsonObject
from openenv_gateway.errors import GatewayError

TIMEOUT = httpx2.Timeout(30, read=300)
"""Seconds, as the SDK's own client has them: a call may last."""


class EndpointError(GatewayError):
    """The endpoint answered with an error of the protocol, or is no MCP endpoint."""

    code = "ENDPOINT_ERROR"
    next_step = "Check that the URL is an MCP endpoint (a gateway's ends in /mcp) and see its log."


async def list_tools(url: str, token: str | None) -> list[JsonObject]:
    """Every page of the endpoint's tools, as on the wire. `token`: for an endpoint that wants one.

    Raises ServerUnreachable, EndpointError.
    """
    found: list[JsonObject] = []
    async with _connected(url, token) as client:
        cursor: str | None = None
        while True:
            page = await client.list_tools(cursor=cursor)
            found += [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in page.tools]
            cursor = page.next_cursor
            if cursor is None:
                return found


async def call_tool(url: str, token: str | None, tool: str, arguments: JsonObject) -> JsonObject:
    """One call's result, as on the wire. Raises ServerUnreachable, EndpointError."""
    async with _connected(url, token) as client:
        result = await client.call_tool(tool, arguments)
        return result.model_dump(mode="json", by_alias=True, exclude_none=True)


@asynccontextmanager
async def _connected(url: str, token: str | None) -> AsyncIterator[Client]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    try:
        async with httpx2.AsyncClient(headers=headers, timeout=TIMEOUT) as http:
            async with Client(streamable_http_client(url, http_client=http)) as client:
                yield client
    except* (OSError, httpx2.HTTPError) as group:
        first = _first(group)
        raise ServerUnreachable(url, str(first) or type(first).__name__) from group
    except* MCPError as group:
        next_step = _next_step(str(_first(group)), token is not None)
        raise EndpointError(f"{url} answered: {_first(group)}", next_step=next_step) from group


def _next_step(answer: str, had_token: bool) -> str | None:
    if "token" not in answer:
        return None
    if had_token:
        return "Check the variable named by --token-env: its token is not (or no longer) in the gateway's token file."
    return "Name the environment variable that holds your token with --token-env."


def _first(error: BaseException) -> BaseException:
    return _first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error
