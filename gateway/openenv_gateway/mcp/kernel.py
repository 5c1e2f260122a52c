"""The methods of MCP that an environment needs, in one table. One seam: `answer(caller, method, params) -> result`."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from openenv_client.errors import OpenEnvError
from openenv_client.frames import JsonObject
from openenv_gateway.errors import GatewayError
from openenv_gateway.mapping.failures import error_data, failure_of
from openenv_gateway.mcp.caller import Caller
from openenv_gateway.mcp.calls import call_tool
from openenv_gateway.mcp.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, RpcError
from openenv_gateway.mcp.revisions import (
    MODERN,
    negotiate,
    server_info,
    word_call_result,
    word_result,
    word_tool,
)
from openenv_gateway.sessions.environment import Environment

log = logging.getLogger(__name__)

Handler = Callable[[Caller, JsonObject], Awaitable[JsonObject]]

CAPABILITIES: JsonObject = {"tools": {"listChanged": False}}


class Kernel:
    """Answers requests for one environment. Knows nothing of transports; raises RpcError for protocol faults."""

    def __init__(self, environment: Environment, page_size: int = 1000) -> None:
        self.environment = environment
        self._page_size = page_size
        self._modern: dict[str, Handler] = {
            "server/discover": self._discover,
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
        }
        self._handshake: dict[str, Handler] = {
            "initialize": self._initialize,
            "ping": self._ping,
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
        }

    async def answer(self, caller: Caller, method: str, params: JsonObject) -> JsonObject:
        """The result of one request, worded for the caller's revision. Raises RpcError."""
        handlers = self._modern if caller.revision.is_modern else self._handshake
        handler = handlers.get(method)
        if handler is None:
            raise RpcError(METHOD_NOT_FOUND, f"Method not found: {method}")
        try:
            return await handler(caller, params)
        except RpcError:
            raise
        except Exception as error:
            log.exception("%s on %s failed", method, self.environment.name)
            raise RpcError(INTERNAL_ERROR, "Internal error of the gateway: its log has the details") from error

    async def _initialize(self, caller: Caller, params: JsonObject) -> JsonObject:
        version = params.get("protocolVersion")
        if not isinstance(version, str):
            raise RpcError(INVALID_PARAMS, 'initialize needs "protocolVersion", a string')
        for key in ("capabilities", "clientInfo"):
            if not isinstance(params.get(key), dict):
                raise RpcError(INVALID_PARAMS, f'initialize needs "{key}", an object')
        return {
            "protocolVersion": negotiate(version).value,
            "capabilities": CAPABILITIES,
            "serverInfo": server_info(self.environment.name),
            "instructions": self._instructions(),
        }

    async def _ping(self, caller: Caller, params: JsonObject) -> JsonObject:
        return {}

    async def _discover(self, caller: Caller, params: JsonObject) -> JsonObject:
        result: JsonObject = {
            "supportedVersions": [revision.value for revision in MODERN],
            "capabilities": CAPABILITIES,
            "instructions": self._instructions(),
        }
        return word_result(result, caller.revision, self.environment.name, cacheable=True)

    async def _list_tools(self, caller: Caller, params: JsonObject) -> JsonObject:
        try:
            tools = (await self.environment.tools()).advertised(caller.handles)
        except (OpenEnvError, GatewayError) as error:
            # A failing list is an error, never an empty list: hosts would take it for an environment without tools.
            failure = failure_of(error)
            raise RpcError(INTERNAL_ERROR, f"The tools cannot be listed: {failure.message}", error_data(failure)) from error
        start = self._start(params.get("cursor"), len(tools))
        page = [word_tool(tool, caller.revision) for tool in tools[start : start + self._page_size]]
        result: JsonObject = {"tools": page}
        if start + self._page_size < len(tools):
            result["nextCursor"] = str(start + self._page_size)
        return word_result(result, caller.revision, self.environment.name, cacheable=True)

    @staticmethod
    def _start(cursor: object, count: int) -> int:
        if cursor is None:
            return 0
        if not isinstance(cursor, str) or not cursor.isdecimal() or len(cursor) > 9 or not 0 < int(cursor) < count:
            raise RpcError(INVALID_PARAMS, "Invalid cursor: use the nextCursor of the previous page")
        return int(cursor)

    async def _call_tool(self, caller: Caller, params: JsonObject) -> JsonObject:
        result = await call_tool(self.environment, caller, params)
        return word_result(word_call_result(result, caller.revision), caller.revision, self.environment.name)

    def _instructions(self) -> str:
        environment = self.environment
        about = environment.description.summary if environment.description else None
        start = "observe" if environment.settings.mapping.exposure == "agent" else "reset"
        lines = [
            f"This server is the OpenEnv environment {environment.name!r}{': ' + about if about else '.'}",
            f"Begin with {start}; each further call acts on the same episode. Every result tells observation, reward and done.",
        ]
        if start == "reset":
            lines.append("When done is true the episode is over: call reset for the next one.")
        return "\n".join(lines)
