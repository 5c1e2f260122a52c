"""`tools/call`: arguments to a request, the lane's outcome to a CallToolResult."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from openenv_client.errors import OpenEnvError
from openenv_client.frames import ErrorFrame, JsonObject, Observation, State
from openenv_gateway.errors import GatewayError, UnknownTool
from openenv_gateway.mapping.actions import to_request
from openenv_gateway.mapping.failures import error_data, failure_of, failure_result
from openenv_gateway.mapping.results import Notes, call_result, observation_result, state_result
from openenv_gateway.mapping.tools import Tool, ToolKind
from openenv_gateway.mcp.caller import Caller, lane_of
from openenv_gateway.mcp.jsonrpc import INVALID_PARAMS, RpcError
from openenv_gateway.sessions.environment import Environment
from openenv_gateway.sessions.lane import Lane
from openenv_gateway.sessions.outcome import ActionLate, Late, Outcome

log = logging.getLogger(__name__)


async def call_tool(environment: Environment, caller: Caller, params: JsonObject) -> JsonObject:
    """The CallToolResult of one `tools/call`.

    What the agent can act on comes back as an `isError` result; a malformed call or an unknown tool raises RpcError -32602.
    """
    name, arguments = params.get("name"), params.get("arguments")
    if not isinstance(name, str):
        raise RpcError(INVALID_PARAMS, 'tools/call needs "name", a string')
    if arguments is not None and not isinstance(arguments, dict):
        raise RpcError(INVALID_PARAMS, 'tools/call takes "arguments" as an object')
    action: JsonObject | None = None
    try:
        tools = await environment.tools()
        tool = tools.find(name)
        handle, rest = tools.split_handle(arguments or {})
        request = to_request(tool, rest)  # before a lane is looked for: bad input opens nothing
        action = request.data
        lane = lane_of(caller, environment, tool.kind, handle)
        timeout_s = environment.settings.timeouts.tools.get(tool.name)
        outcome = await lane.call(request, tool.name, timeout_s)
    except UnknownTool as error:
        raise RpcError(INVALID_PARAMS, str(error), error_data(failure_of(error))) from error
    except ActionLate as error:
        return _late_failure(environment, lane, error)
    except (OpenEnvError, GatewayError) as error:
        return failure_result(failure_of(error, action=action))
    except asyncio.CancelledError:
        raise
    except Exception as error:
        log.exception("tools/call %s on %s failed", name, environment.name)
        return failure_result(failure_of(error, action=action))
    return _result(environment, caller, tool, lane, outcome)


def _result(environment: Environment, caller: Caller, tool: Tool, lane: Lane, outcome: Outcome) -> JsonObject:
    told = tool.kind is ToolKind.RESET or outcome.opened
    notes = Notes(
        session_id=lane.handle if told else None,
        notice=outcome.notice,
        late=_late_note(environment, outcome.late),
        episode=outcome.episode,
        step=outcome.step,
        lane=lane.handle,
    )
    options = environment.settings.mapping
    if isinstance(outcome.reply, State):
        return state_result(outcome.reply, options, notes)
    if tool.kind is ToolKind.CALL:
        return call_result(outcome.reply, options, notes)
    return observation_result(outcome.reply, options, notes)


def _late_note(environment: Environment, late: Late | None) -> JsonObject | None:
    """A late outcome as one JSON object beside this call's own: without pictures, which belong to another result."""
    if late is None:
        return None
    if isinstance(late.reply, ErrorFrame):
        return {"tool": late.tool, "error": {"code": late.reply.code, "message": late.reply.message}}
    assert isinstance(late.reply, Observation)
    structured: JsonObject = observation_result(late.reply, environment.settings.mapping, Notes())["structuredContent"]
    structured.pop("next", None)
    return {"tool": late.tool, **_without_pictures(structured)}


def _without_pictures(value: Any) -> Any:
    if isinstance(value, dict):
        if "$content" in value:
            return {"$left_out": "a picture or sound; call observe or step to see the present one"}
        return {key: _without_pictures(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_pictures(item) for item in value]
    return value


def _late_failure(environment: Environment, lane: Lane, error: ActionLate) -> JsonObject:
    """The answer to an action that was not executed because an earlier one finished late: its outcome, pictures included."""
    note = _late_note(environment, error.late)
    result = failure_result(failure_of(error), Notes(late=note, lane=lane.handle))
    if isinstance(error.late.reply, Observation):
        shown = observation_result(error.late.reply, environment.settings.mapping, Notes())
        result["content"] += [block for block in shown["content"] if block["type"] != "text"]
    return result
