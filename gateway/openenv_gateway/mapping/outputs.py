"""The outputSchema of each tool: the shape of structuredContent. Pure.

Hosts check results against it, so it says no more than always holds: fields of an observation may be replaced by a reference
to a content block or to a resource, and are therefore named in words and not constrained.
"""

from __future__ import annotations

from openenv_client.frames import JsonObject
from openenv_gateway.mapping.options import MappingOptions

_ASIDE = frozenset({"done", "reward", "metadata"})
_MAX_FIELDS = 40

_ALSO: JsonObject = {
    "session_id": {"type": "string", "description": "The handle of the session that was used: pass it to later calls."},
    "notice": {"type": "string", "description": "A remark of the gateway on this call, such as that it opened a session."},
    "late": {
        "type": "object",
        "properties": {},
        "description": "The outcome of an earlier call that was given up before its reply came.",
    },
}


def step_output(observation: JsonObject, options: MappingOptions) -> JsonObject:
    """For tools that answer with an observation. `observation` is its schema as served; only its field names are used."""
    properties: JsonObject = {"observation": {"type": "object", "properties": {}, "description": _observation(observation)}}
    if options.reward == "visible":
        kinds = [{"type": name} for name in ("number", "boolean", "null")]  # as published, and as servers declare it
        properties["reward"] = {"anyOf": kinds, "description": "The reward of this action; null if there is none."}
    properties["done"] = {"type": "boolean", "description": "True when the episode is over."}
    properties["next"] = {"type": "string", "description": "What to do next, once the episode is over."}
    return {"type": "object", "properties": {**properties, **_ALSO}, "required": ["observation", "done"]}


def state_output() -> JsonObject:
    """For the tool that answers with the environment's state."""
    state = {"type": "object", "properties": {}, "description": "The environment's own account of its state."}
    return {"type": "object", "properties": {"state": state, **_ALSO}, "required": ["state"]}


def _observation(schema: JsonObject) -> str:
    declared = schema.get("properties")
    fields = [name for name in declared if name not in _ASIDE] if isinstance(declared, dict) else []
    listed = f" Fields: {', '.join(fields[:_MAX_FIELDS])}{', …' if len(fields) > _MAX_FIELDS else ''}." if fields else ""
    return (
        f"What the environment shows after the call.{listed} A picture stands as {{\"$content\": n}} and is content block n of "
        "the result; a part that is too large stands as {\"$cut\": {…}}, which says where to read it."
    )
