"""The methods of MCP in front of a scripted environment, without a transport; every result is judged by the official models."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest
from mcp_types.methods import validate_server_result

from openenv_client.frames import JsonObject
from openenv_gateway.mcp.caller import Caller
from openenv_gateway.mcp.jsonrpc import RpcError
from openenv_gateway.mcp.kernel import Kernel
from openenv_gateway.mcp.revisions import HANDSHAKE, MODERN, Revision
from openenv_gateway.mcp.sessions import McpSession
from openenv_gateway.sessions.environment import Environment
from testkit.gateways import environment_settings

REVISIONS: tuple[Revision, ...] = (*HANDSHAKE, *MODERN)
LATEST = MODERN[-1]


def session(revision: Revision = HANDSHAKE[-1], principal: str = "anonymous") -> Caller:
    """A caller with an MCP session of its own; in 2026-07-28, which has none, one whose URL names its lane."""
    if revision.is_modern:
        return Caller(revision, principal, lane_name="mine")
    return Caller(revision, principal, McpSession("s" * 32, principal, revision))


class JudgedKernel:
    """A kernel whose every result must be valid in the caller's revision."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.environment = kernel, kernel.environment

    async def ask(self, method: str, params: JsonObject | None = None, caller: Caller | None = None) -> JsonObject:
        """The result as a client reads it from the wire. Raises RpcError."""
        caller = caller or session()
        result = await self.kernel.answer(caller, method, params or {})
        wire: JsonObject = orjson.loads(orjson.dumps(result))
        validate_server_result(method, caller.revision.value, wire)
        return wire

    async def call(self, tool: str, arguments: JsonObject | None = None, caller: Caller | None = None) -> JsonObject:
        """The result of one tools/call."""
        return await self.ask("tools/call", {"name": tool, "arguments": arguments or {}}, caller)

    async def refusal(self, method: str, params: JsonObject | None = None, caller: Caller | None = None) -> RpcError:
        """The error that answers this request."""
        with pytest.raises(RpcError) as caught:
            await self.ask(method, params, caller)
        return caught.value


@asynccontextmanager
async def kernel_for(url: str, page_size: int = 1000, **changes: Any) -> AsyncIterator[JudgedKernel]:
    """The kernel of an environment whose server runs at `url`. `changes` as for testkit.gateways.environment_settings."""
    environment = Environment(environment_settings(url, **changes))
    try:
        yield JudgedKernel(Kernel(environment, page_size))
    finally:
        await environment.close()


def as_principal(caller: Caller, principal: str) -> Caller:
    """The same caller with somebody else's name."""
    return caller._replace(principal=principal)
