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
from openenv_gateway.mcp.completions import complete
from openenv_gateway.mcp.inflight import LEVELS
from openenv_gateway.mcp.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, RpcError
from openenv_gateway.mcp.pages import page_of
from openenv_gateway.mcp.prompts import get_prompt, list_prompts
from openenv_gateway.mcp.resources import NEWEST, list_resources, list_templates, read_resource
from openenv_gateway.mcp.revisions import (
    MODERN,
    TTL_MS,
    negotiate,
    server_info,
    word_call_result,
    word_listed,
    word_result,
    word_tool,
)
from openenv_gateway.sessions.environment import Environment

log = logging.getLogger(__name__)

Handler = Callable[[Caller, JsonObject], Awaitable[JsonObject]]

CAPABILITIES: JsonObject = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": False, "listChanged": False},
    "prompts": {"listChanged": False},
    "completions": {},
    "logging": {},
}
"""What there is, in both eras. Log messages are asked for by `logging/setLevel`, from 2026-07-28 on in each request.

Of the lists only that of tools is said to change: there is one prompt for ever, and which resources there are follows from the
server's description, which tells nothing new to whoever has heard of its tools."""

LANE_FREE = frozenset({
    "ping",
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "prompts/list",
    "prompts/get",
    "completion/complete",
})
"""Methods that need no session in any era: what they answer is nobody's own, or named by an unguessable URI."""


class Kernel:
    """Answers requests for one environment. Knows nothing of transports; raises RpcError for protocol faults."""

    def __init__(self, environment: Environment, page_size: int = 1000) -> None:
        self.environment = environment
        self._page_size = page_size
        both: dict[str, Handler] = {
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
            "resources/list": self._list_resources,
            "resources/templates/list": self._list_templates,
            "resources/read": self._read_resource,
            "prompts/list": self._list_prompts,
            "prompts/get": self._get_prompt,
            "completion/complete": self._complete,
        }
        self._modern: dict[str, Handler] = {"server/discover": self._discover, **both}
        self._handshake: dict[str, Handler] = {
            "initialize": self._initialize,
            "ping": self._ping,
            "logging/setLevel": self._set_level,
            **both,
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
        except (OpenEnvError, GatewayError) as error:
            # A list that fails is an error, never an empty list: hosts would take it for an environment without tools.
            failure = failure_of(error)
            raise RpcError(INTERNAL_ERROR, f"{method} failed: {failure.message}", error_data(failure)) from error
        except Exception as error:
            log.exception("%s on %s failed", method, self.environment.name)
            raise RpcError(INTERNAL_ERROR, "Internal error of the gateway: its log has the details") from error

    # --- opening ----------------------------------------------------------------------------------------------------

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
        return self._worded(caller, result, TTL_MS)

    async def _set_level(self, caller: Caller, params: JsonObject) -> JsonObject:
        level = params.get("level")
        if level not in LEVELS:
            raise RpcError(INVALID_PARAMS, f'logging/setLevel needs "level", one of {", ".join(LEVELS)}')
        if caller.session is None:
            raise RpcError(INVALID_REQUEST, "logging/setLevel needs an MCP session to hold for: send initialize first")
        caller.session.log_level = level
        return {}

    # --- tools ------------------------------------------------------------------------------------------------------

    async def _list_tools(self, caller: Caller, params: JsonObject) -> JsonObject:
        tools = (await self.environment.tools()).advertised(caller.handles)
        page = page_of("tools", tools, params.get("cursor"), self._page_size)
        return self._worded(caller, {**page, "tools": [word_tool(tool, caller.revision) for tool in page["tools"]]}, TTL_MS)

    async def _call_tool(self, caller: Caller, params: JsonObject) -> JsonObject:
        result = await call_tool(self.environment, caller, params)
        return self._worded(caller, word_call_result(result, caller.revision))

    # --- beyond tools -----------------------------------------------------------------------------------------------

    async def _list_resources(self, caller: Caller, params: JsonObject) -> JsonObject:
        return self._listed(caller, params, "resources", await list_resources(self.environment))

    async def _list_templates(self, caller: Caller, params: JsonObject) -> JsonObject:
        return self._listed(caller, params, "resourceTemplates", list_templates(self.environment))

    async def _read_resource(self, caller: Caller, params: JsonObject) -> JsonObject:
        result = await read_resource(self.environment, caller, params)
        return self._worded(caller, result, 0 if str(params["uri"]).endswith(f"/{NEWEST}") else TTL_MS)

    async def _list_prompts(self, caller: Caller, params: JsonObject) -> JsonObject:
        return self._listed(caller, params, "prompts", list_prompts(self.environment))

    async def _get_prompt(self, caller: Caller, params: JsonObject) -> JsonObject:
        return self._worded(caller, await get_prompt(self.environment, caller, params))

    async def _complete(self, caller: Caller, params: JsonObject) -> JsonObject:
        return self._worded(caller, await complete(self.environment, caller, params))

    # --- wording ----------------------------------------------------------------------------------------------------

    def _listed(self, caller: Caller, params: JsonObject, key: str, items: list[JsonObject]) -> JsonObject:
        worded = [word_listed(item, caller.revision) for item in items]
        return self._worded(caller, page_of(key, worded, params.get("cursor"), self._page_size), TTL_MS)

    def _worded(self, caller: Caller, result: JsonObject, ttl_ms: int | None = None) -> JsonObject:
        return word_result(result, caller.revision, self.environment.name, ttl_ms=ttl_ms)

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
