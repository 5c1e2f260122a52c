"""The gateway's tool results → the objects that OpenEnv's servers would have sent. Pure.

Results are asked for as the environment gave them (`openenv/verbatim`): nothing has been cut from them or taken out.
"""

from __future__ import annotations

from typing import Any, Final

from openenv_client.errors import BadReply
from openenv_client.frames import JsonObject, parse_observation

REWARD: Final = "openenv/reward"
METADATA: Final = "openenv/metadata"
_BESIDE: Final = ("notice", "late")
_NUMBERS: Final = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


def structured(result: JsonObject) -> JsonObject:
    """What a result says to programs. Raises BadReply if it says nothing."""
    content = result.get("structuredContent")
    if not isinstance(content, dict):
        raise BadReply("structuredContent", f"{type(content).__name__}, not an object")
    return content


def observed(result: JsonObject) -> JsonObject:
    """{"observation", "reward", "done"[, "metadata"]}, as a frame has it, and what the gateway remarks beside it: "notice", a
    sentence about the call, and "late", an earlier call's outcome. The reward is None where the operator hides it.

    Raises BadReply.
    """
    content, meta = structured(result), _object(result.get("_meta"))
    payload: JsonObject = {
        "observation": content.get("observation"),
        "reward": _reward(content, meta),
        "done": content.get("done", False),
    }
    if METADATA in meta:
        payload["metadata"] = meta[METADATA]
    parse_observation(payload)
    return {**payload, **{key: content[key] for key in _BESIDE if key in content}}


def stated(result: JsonObject) -> JsonObject:
    """The state object. Raises BadReply."""
    state = structured(result).get("state")
    if not isinstance(state, dict):
        raise BadReply("state", f"{type(state).__name__}, not an object")
    return state


def _reward(content: JsonObject, meta: JsonObject) -> Any:
    told = meta.get(REWARD, content.get("reward"))
    return _NUMBERS.get(told, told) if isinstance(told, str) else told


def _object(value: object) -> JsonObject:
    return value if isinstance(value, dict) else {}
