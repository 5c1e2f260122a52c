"""OpenEnv's own JSON-RPC beside MCP's: sessions that are made and ended by methods, and named in `params.session_id`.

Such a session is a lane, its id the lane's handle. It is made without a place on a server: that is taken by its first use, so
that a client that was lost after `openenv/session/create` holds nothing. A tool call is a step, with reward and done; its
result has the form that OpenEnv's clients read (`data` holds the tool's value), a failure is a JSON-RPC error.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from openenv_client.errors import OpenEnvError
from openenv_client.frames import JsonObject
from openenv_gateway.errors import GatewayError, InvalidArguments, UnknownHandle, UnknownTool
from openenv_gateway.mapping.actions import to_request
from openenv_gateway.mapping.failures import error_data, failure_of, failure_result
from openenv_gateway.mapping.results import Notes
from openenv_gateway.mapping.tools import Handles
from openenv_gateway.mcp import jsonrpc
from openenv_gateway.mcp.jsonrpc import INVALID_PARAMS, INVALID_REQUEST, Request, RpcError
from openenv_gateway.mcp.revisions import VERSION_KEY
from openenv_gateway.sessions.environment import Environment
from openenv_gateway.sessions.lane import Lane
from openenv_gateway.sessions.outcome import ActionLate
from openenv_gateway.transports.openenv_results import rpc_result

log = logging.getLogger(__name__)

CREATE, CLOSE = "openenv/session/create", "openenv/session/close"
SERVER_ERROR = -32000
ATTACHED = "an OpenEnv client's /ws"
"""The owner of a lane as long as a client's `/ws` is on it."""


class AlreadyAttached(GatewayError):
    """A second `/ws` on one session: their requests would mix."""

    code = "ALREADY_ATTACHED"
    next_step = "Close the other connection first, or create a session of your own."


def is_openenv(method: object, params: object) -> bool:
    """Whether a request is one of OpenEnv's own, not of MCP: by its method, or by the session that its parameters name."""
    if method in (CREATE, CLOSE):
        return True
    if method not in ("tools/list", "tools/call") or not isinstance(params, dict):
        return False
    meta = params.get("_meta")
    return isinstance(params.get("session_id"), str) and not (isinstance(meta, dict) and VERSION_KEY in meta)


def names_openenv_session(value: Any, headers: Mapping[str, str]) -> bool:
    """Whether a POSTed message is one of OpenEnv's own: an MCP session in its headers makes tool calls MCP's."""
    if not isinstance(value, dict) or not is_openenv(value.get("method"), value.get("params")):
        return False
    return value["method"] in (CREATE, CLOSE) or "mcp-session-id" not in headers


def _never() -> bool:
    return False


class OpenEnvRpc:
    """Answers OpenEnv's own requests for one environment, and knows on which sessions a `/ws` is."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._closing: set[Lane] = set()

    async def respond(
        self, value: Any, principal: str, own: Lane | None = None, gone: Callable[[], bool] = _never
    ) -> bytes:
        """The response to one decoded message. Never raises for what is wrong with it."""
        try:
            message = jsonrpc.parse_message(value)
            if not isinstance(message, Request):
                raise RpcError(INVALID_REQUEST, "OpenEnv's methods are requests: give the message a method and an id")
            result = await self.answer(message.method, message.params, principal, own, gone)
            return jsonrpc.result_message(message.id, result)
        except RpcError as error:
            return jsonrpc.error_message(jsonrpc.id_of(value), error)

    async def answer(
        self,
        method: str,
        params: JsonObject,
        principal: str,
        own: Lane | None = None,
        gone: Callable[[], bool] = _never,
    ) -> JsonObject:
        """The result of one request. `own` is the lane of the connection on which it came, None for a lone POST; `gone` says
        afterwards whether the client has left (see `Lane.call`). Raises RpcError."""
        try:
            match method:
                case "openenv/session/create":
                    return {"session_id": (own or self._environment.lanes.new(principal)).handle}
                case "openenv/session/close":
                    return self._close(self._named(params, principal), own)
                case "tools/list":
                    self._lane(params, principal, own)
                    return {"tools": [_listed(tool) for tool in (await self._environment.tools()).advertised(Handles.NONE)]}
                case "tools/call":
                    return await self._call(self._lane(params, principal, own), params, gone)
        except (OpenEnvError, GatewayError) as error:
            raise _rpc_error(error) from error
        raise RpcError(jsonrpc.METHOD_NOT_FOUND, f"Method not found: {method}")

    def attach(self, session_id: str, principal: str) -> Lane:
        """A client's `/ws` takes its session. Raises UnknownHandle, AlreadyAttached."""
        lane = self._environment.lanes.by_handle(session_id, principal)
        if ATTACHED in lane.owners:
            raise AlreadyAttached(f"The session {session_id[:64]} has a WebSocket already")
        lane.owners.add(ATTACHED)
        return lane

    def detach(self, lane: Lane) -> None:
        """The `/ws` is gone. The session stays for whoever has its id, unless it was closed meanwhile."""
        lane.owners.discard(ATTACHED)
        if lane in self._closing:
            self._closing.discard(lane)
            self._environment.lanes.discard(lane)

    def _close(self, lane: Lane, own: Lane | None) -> JsonObject:
        if lane is own:
            raise RpcError(INVALID_REQUEST, "This is the session of the connection itself: close the connection")
        if ATTACHED in lane.owners:
            self._closing.add(lane)
            return {"session_id": lane.handle, "closed": False, "closing": True}
        self._environment.lanes.discard(lane)
        return {"session_id": lane.handle, "closed": True}

    def _lane(self, params: JsonObject, principal: str, own: Lane | None) -> Lane:
        return own if own is not None and params.get("session_id") is None else self._named(params, principal)

    def _named(self, params: JsonObject, principal: str) -> Lane:
        session_id = params.get("session_id")
        if not isinstance(session_id, str) or not session_id:
            raise RpcError(INVALID_PARAMS, f"params.session_id is required: the one that {CREATE} returned")
        return self._environment.lanes.by_handle(session_id, principal)

    async def _call(self, lane: Lane, params: JsonObject, gone: Callable[[], bool]) -> JsonObject:
        name, arguments = params.get("name"), params.get("arguments")
        if not isinstance(name, str):
            raise RpcError(INVALID_PARAMS, 'tools/call needs "name", a string')
        settings = self._environment.settings
        tool = (await self._environment.tools()).find(name)
        request = to_request(tool, arguments)
        try:
            outcome = await lane.call(request, name, settings.timeouts.tools.get(name), gone)
        except (OpenEnvError, GatewayError) as error:
            raise _rpc_error(error, request.data, lane) from error
        except Exception as error:
            log.exception("tools/call %s on %s failed", name, self._environment.name)
            raise _rpc_error(error, request.data, lane) from error
        return rpc_result(outcome, request, settings.mapping, lane.handle)


def _listed(tool: JsonObject) -> JsonObject:
    """What OpenEnv's clients read of a tool. Not its output schema, which describes MCP's results."""
    return {key: tool[key] for key in ("name", "title", "description", "inputSchema", "annotations")}


def _rpc_error(error: Exception, action: JsonObject | None = None, lane: Lane | None = None) -> RpcError:
    code = INVALID_PARAMS if isinstance(error, UnknownTool | InvalidArguments | UnknownHandle) else SERVER_ERROR
    failure = failure_of(error, action=action)
    late = error.late.as_note() if isinstance(error, ActionLate) else None
    step = None if lane is None or lane.episode is None else lane.step_count
    notes = Notes(late=late, episode=None if lane is None else lane.episode, step=step)
    text: str = failure_result(failure, notes)["content"][0]["text"]
    return RpcError(code, text, error_data(failure))
