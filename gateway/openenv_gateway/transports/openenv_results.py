"""A call's outcome in the form that OpenEnv's own clients read: snake case, the value in `data`. Pure.

An MCP environment's own result goes on as the environment gave it, nothing cut and no picture taken out: programs read it.
Reward, done and what the gateway has to tell stand beside it; where the value is the gateway's own, they are in it.
"""

from __future__ import annotations

from openenv_client.frames import JsonObject, State
from openenv_gateway.mapping import calls
from openenv_gateway.mapping.actions import Request
from openenv_gateway.mapping.assembly import observation_members, observation_meta
from openenv_gateway.mapping.blocks import content_blocks
from openenv_gateway.mapping.failures import Failure, error_data, failure_text, reported_failure, tool_failure
from openenv_gateway.mapping.notes import Notes
from openenv_gateway.mapping.options import MappingOptions
from openenv_gateway.mcp.jsonrpc import RpcError
from openenv_gateway.sessions.outcome import Outcome

TOOL_FAILED = -32603
"""The JSON-RPC error code with which OpenEnv servers report a tool that failed."""
_SNAKE = {"structuredContent": "structured_content", "isError": "is_error", "_meta": "meta"}


def rpc_result(outcome: Outcome, request: Request, options: MappingOptions, handle: str) -> JsonObject:
    """The result of one `tools/call`. Raises RpcError for a tool of the environment's that failed."""
    late = None if outcome.late is None else outcome.late.as_note()
    notes = Notes(notice=outcome.notice, late=late, episode=outcome.episode, step=outcome.step, lane=handle)
    shown = notes.shown(options)
    if isinstance(outcome.reply, State):
        return {"data": {"state": outcome.reply.state, **shown}, "is_error": False, "meta": notes.meta()}
    meta = observation_meta(outcome.reply, options, notes)
    members = observation_members(outcome.reply, options)
    found = calls.outcome_of(outcome.reply.observation)
    if found is None:
        return {"data": {**members, **shown}, "is_error": False, "meta": meta}
    if (failure := _failure(found, request.data)) is not None:
        raise RpcError(TOOL_FAILED, failure_text(failure), error_data(failure))
    result = {_SNAKE.get(key, key): value for key, value in outcome.reply.observation["result"].items()}
    beside = {key: members[key] for key in ("reward", "done") if key in members}
    return {**result, **beside, **shown, "meta": {**(result.get("meta") or {}), **meta}}


def _failure(found: calls.Outcome, action: JsonObject) -> Failure | None:
    if found.error is not None:
        return tool_failure(found.error, action)
    if not found.is_error:
        return None
    texts = [block["text"] for block in content_blocks(found.content) if block["type"] == "text"]
    return reported_failure("\n".join(texts) or str(found.value), action)
