"""`tools/call`: arguments to a request, the lane's outcome to a CallToolResult."""

from __future__ import annotations

import asyncio
import logging

from openenv_client.errors import OpenEnvError
from openenv_client.frames import JsonObject, State
from openenv_gateway.errors import GatewayError, UnknownTool
from openenv_gateway.mapping.actions import Request, to_request
from openenv_gateway.mapping.failures import error_data, failure_of, failure_result
from openenv_gateway.mapping.results import Notes, call_result, observation_result, state_result
from openenv_gateway.mapping.tools import Tool, ToolKind
from openenv_gateway.mapping.verbatim import verbatim_result, with_late_outcome
from openenv_gateway.mapping.whole import Whole
from openenv_gateway.mcp.caller import Caller, lane_of
from openenv_gateway.mcp.inflight import InFlight
from openenv_gateway.mcp.jsonrpc import INVALID_PARAMS, RpcError
from openenv_gateway.mcp.resources import latest_uri
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
    try:
        tools = environment.known_tools or await environment.tools()
        tool = tools.find(name)
        handle, rest = tools.split_handle(arguments)
        request = to_request(tool, rest)  # before a lane is looked for: bad input opens nothing
        lane = lane_of(caller, environment, tool.kind, handle)
    except UnknownTool as error:
        raise RpcError(INVALID_PARAMS, str(error), error_data(failure_of(error))) from error
    except (OpenEnvError, GatewayError) as error:
        return failure_result(failure_of(error))
    try:
        return await _play(environment, caller, tool, lane, request)
    except asyncio.CancelledError:
        if handle is None and caller.session is None and caller.lane_name is None:
            environment.lanes.discard(lane)  # opened by this call: nobody has its handle, so nobody could ever end it
        raise
    finally:
        if caller.request is not None and caller.request.gone():
            caller.request.heard = lane.kept_of_last_turn()
        environment.lanes.discard_unopened(lane)


async def _play(environment: Environment, caller: Caller, tool: Tool, lane: Lane, request: Request) -> JsonObject:
    late: Late | None = None
    timeout_s = environment.settings.timeouts.tools.get(tool.name)
    running = caller.request or InFlight()
    running.doing = lane.doing
    if running.is_logged:
        running.log("debug", f"{tool.name}: the arguments fit; it becomes a {request.kind}")
        running.log("info", f"{tool.name}: called on {lane!r}")
    try:
        outcome = await lane.call(request, tool.name, timeout_s, running.gone)
        if running.is_logged:
            running.log("info", f"{tool.name}: answered, now {lane!r}")
        whole = _whole(environment, lane)
        result = _result(environment, tool, lane, request, outcome, whole, running.wants_verbatim)
        return _keeping(environment, lane, whole, result)
    except ActionLate as caught:
        failure, late = failure_of(caught), caught.late
    except (OpenEnvError, GatewayError) as caught:
        failure = failure_of(caught, action=request.data)
    except Exception as caught:
        log.exception("tools/call %s on %s failed", tool.name, environment.name)
        failure = failure_of(caught, action=request.data)
    running.log("warning", f"{tool.name}: {failure.code}")
    notes = Notes(
        late=late.as_note() if late is not None else None,
        episode=lane.episode,
        step=lane.step_count if lane.episode is not None else None,
        lane=lane.handle,
    )
    whole = _whole(environment, lane)
    result = failure_result(failure, notes, options=environment.settings.mapping, whole=whole)
    if running.wants_verbatim:
        result = with_late_outcome(result, notes, environment.settings.mapping)
    return _keeping(environment, lane, whole, result)


def _whole(environment: Environment, lane: Lane) -> Whole:
    """For what is cut from a result."""
    latest = environment.lanes.latest
    return Whole(lambda: latest_uri(environment.name, *latest.place(lane)), latest.lane_bytes)


def _keeping(environment: Environment, lane: Lane, whole: Whole, result: JsonObject) -> JsonObject:
    """The result; what was cut from it stays readable as a whole."""
    if whole.parts:
        environment.lanes.latest.keep(lane, whole.parts)
    return result


def _result(
    environment: Environment, tool: Tool, lane: Lane, request: Request, outcome: Outcome, whole: Whole, is_verbatim: bool
) -> JsonObject:
    options = environment.settings.mapping
    notes = Notes(
        session_id=lane.handle if tool.kind is ToolKind.RESET or outcome.opened else None,
        notice=outcome.notice,
        late=outcome.late.as_note() if outcome.late is not None else None,
        episode=outcome.episode,
        step=outcome.step,
        lane=lane.handle,
    )
    if is_verbatim:
        return verbatim_result(outcome.reply, options, notes)
    if isinstance(outcome.reply, State):
        return state_result(outcome.reply, options, notes, whole=whole)
    if tool.kind is ToolKind.CALL:
        return call_result(outcome.reply, options, notes, action=request.data, whole=whole)
    return observation_result(outcome.reply, options, notes, whole=whole)
