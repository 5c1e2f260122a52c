"""A reply for a program instead of an agent: as the environment gave it, when the request's `_meta` asks for that. Pure.

Agents' hosts need pictures as content, sizes that they can show and failures as text; a program that trains or evaluates needs
the observation that the environment sent, bit for bit. Nothing is taken out of it or cut, a tool's failure is an observation as
any other, and `content` is empty. What the operator does not show, the reward, is not shown here either.
"""

from __future__ import annotations

from openenv_client.frames import JsonObject, Observation, State
from openenv_gateway.mapping.assembly import observation_meta
from openenv_gateway.mapping.notes import METADATA, Notes, finite, late_meta, late_shown, observation_shown
from openenv_gateway.mapping.options import MappingOptions

VERBATIM = "openenv/verbatim"
"""The key in a request's `_meta`: true asks for this form."""

LATE = "openenv/late"
"""The key in `_meta` of an isError result: the outcome that its text tells, as `late` in the published tool_result schema."""


def verbatim_result(reply: Observation | State, options: MappingOptions, notes: Notes) -> JsonObject:
    """The result of any tool. `_meta["openenv/metadata"]` is the frame's own metadata, if it has any."""
    shown = notes.shown(options)
    if isinstance(reply, State):
        return _result({"state": reply.state, **shown}, {**notes.meta(), **late_meta(notes.late, options)})
    structured: JsonObject = {"observation": reply.observation}
    if options.reward == "visible":
        structured["reward"] = finite(reply.reward)
    else:
        structured["observation"] = observation_shown(reply.observation, reply.reward, reply.done, options)
    meta = observation_meta(reply, options, notes)
    if reply.metadata:
        meta[METADATA] = reply.metadata
    return _result({**structured, "done": reply.done, **shown}, meta)


def with_late_outcome(result: JsonObject, notes: Notes, options: MappingOptions) -> JsonObject:
    """An isError result with the late outcome of `notes`, if there is one, as data too."""
    if notes.late is None:
        return result
    return {**result, "_meta": {**result["_meta"], LATE: late_shown(notes.late, options)}}


def _result(structured: JsonObject, meta: JsonObject) -> JsonObject:
    return {"content": [], "structuredContent": structured, "isError": False, "_meta": meta}
