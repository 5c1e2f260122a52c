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

__all__ = ["Notes", "call_result", "harden", "observation_result", "parse_frame", "state_result"]


def observation_result(
    reply: Observation, options: MappingOptions, notes: Notes, *, latest_uri: str | None = None
) -> JsonObject:
    """The result of reset, step or observe: structuredContent is {"observation", "reward", "done"} and what there is to tell.

    `reply` must come from `parse_frame` or `harden`. `latest_uri` is where the whole of a cut observation can be read.
    """
    structured = {**observation_members(reply, options), **notes.shown(options)}
    return assemble(structured, observation_meta(reply, options, notes), options, latest_uri)


def state_result(reply: State, options: MappingOptions, notes: Notes, *, latest_uri: str | None = None) -> JsonObject:
    """The result of state: structuredContent is {"state"} and what there is to tell. `reply` as in `observation_result`."""
    structured = {"state": reply.state, **notes.shown(options)}
    return assemble(structured, {**notes.meta(), **late_meta(notes.late, options)}, options, latest_uri)


def call_result(
    reply: Observation,
    options: MappingOptions,
    notes: Notes,
    *,
    action: JsonObject | None = None,
    latest_uri: str | None = None,
) -> JsonObject:
    """The result of a call of an MCP environment's own tool: the tool's content one to one, see `calls`.

    A reply without a tool's result in it is shown as any observation. `action` is told beside a tool's failure.
    """
    outcome = calls.outcome_of(reply.observation)
    if outcome is None:
        return observation_result(reply, options, notes, latest_uri=latest_uri)
    return calls.tool_result(outcome, calls.Call(reply, options, notes, action, latest_uri))
