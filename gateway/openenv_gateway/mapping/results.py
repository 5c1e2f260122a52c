"""Observation, reward, done → a CallToolResult as plain JSON. Pure.

Half of the hosts read only the text, a third only structuredContent: so the first block is the JSON of structuredContent,
pictures and sounds follow, and `{"$content": n}` stands in their place.
"""

from __future__ import annotations

from openenv_client.frames import JsonObject, Observation, State
from openenv_gateway.mapping import calls
from openenv_gateway.mapping.assembly import assemble, observation_members, observation_meta
from openenv_gateway.mapping.notes import Notes, late_meta
from openenv_gateway.mapping.options import MappingOptions
from openenv_gateway.mapping.replies import harden, parse_frame
from openenv_gateway.mapping.whole import Whole

__all__ = ["Notes", "call_result", "harden", "observation_result", "parse_frame", "state_result"]


def observation_result(
    reply: Observation, options: MappingOptions, notes: Notes, *, whole: Whole | None = None
) -> JsonObject:
    """The result of reset, step or observe: structuredContent is {"observation", "reward", "done"} and what there is to tell.

    `reply` must come from `parse_frame` or `harden`. `whole` takes what is too large to be shown.
    """
    structured = {**observation_members(reply, options), **notes.shown(options)}
    return assemble(structured, observation_meta(reply, options, notes), options, whole)


def state_result(reply: State, options: MappingOptions, notes: Notes, *, whole: Whole | None = None) -> JsonObject:
    """The result of state: structuredContent is {"state"} and what there is to tell. `reply` as in `observation_result`."""
    structured = {"state": reply.state, **notes.shown(options)}
    return assemble(structured, {**notes.meta(), **late_meta(notes.late, options)}, options, whole)


def call_result(
    reply: Observation,
    options: MappingOptions,
    notes: Notes,
    *,
    action: JsonObject | None = None,
    whole: Whole | None = None,
) -> JsonObject:
    """The result of a call of an MCP environment's own tool: the tool's content one to one, see `calls`.

    A reply without a tool's result in it is shown as any observation. `action` is told beside a tool's failure.
    """
    outcome = calls.outcome_of(reply.observation)
    if outcome is None:
        return observation_result(reply, options, notes, whole=whole)
    return calls.tool_result(outcome, calls.Call(reply, options, notes, action, whole))
