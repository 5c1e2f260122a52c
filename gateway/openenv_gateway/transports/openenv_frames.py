"""OpenEnv's `/ws` frames from the server's side: what a client may send, and the error frames that it gets. Pure.

Codes, texts and the shape of field errors are those of OpenEnv servers, so that a client cannot tell the difference.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from openenv_client.errors import CapacityReached, EpisodeLost, FactoryFailed
from openenv_client.frames import JsonObject
from openenv_gateway.errors import LaneBusy, QueueTimeout, StillOpening
from openenv_gateway.mapping.causes import counts
from openenv_gateway.mapping.failures import failure_of
from openenv_gateway.mapping.replies import plain_value

_MEMBERS: Final[dict[str, frozenset[str]]] = {
    "reset": frozenset({"type", "data"}),
    "step": frozenset({"type", "data"}),
    "mcp": frozenset({"type", "data"}),
    "state": frozenset({"type"}),
    "close": frozenset({"type"}),
}
_GOES_ON = (LaneBusy, StillOpening)
"""Errors after which the session is as it was: the same request may be sent again."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A client's request: reset, step, state, close or mcp."""

    kind: str
    data: JsonObject = field(default_factory=dict)


class BadFrame(Exception):
    """A frame that is no request. `ends`: OpenEnv servers end the session over it."""

    def __init__(self, message: str, code: str, *, ends: bool = False, errors: list[JsonObject] | None = None) -> None:
        super().__init__(message)
        self.ends = ends
        self.frame = error_frame(message, code, {} if errors is None else {"errors": errors})


def parse_frame(message: str | bytes) -> Frame:
    """The request in one message. Raises BadFrame."""
    if isinstance(message, bytes):
        raise BadFrame("A frame is one text message: this one is binary", "SESSION_ERROR", ends=True)
    try:
        value = json.loads(message)
    except (ValueError, RecursionError) as error:
        raise BadFrame(f"Invalid JSON: {error}", "INVALID_JSON") from error
    if not isinstance(value, dict):
        raise BadFrame("A frame is one JSON object", "SESSION_ERROR", ends=True)
    kind = value.get("type", "")
    if not isinstance(kind, str) or kind not in _MEMBERS:
        raise BadFrame(f"Unknown message type: {str(kind)[:100]}", "UNKNOWN_TYPE")
    if errors := _field_errors(kind, value):
        raise BadFrame("Invalid message", "VALIDATION_ERROR", errors=errors)
    return Frame(kind, value.get("data", {}))


def error_frame(message: str, code: str, more: JsonObject | None = None) -> bytes:
    return orjson.dumps({"type": "error", "data": plain_value({"message": message, "code": code, **(more or {})})})


def failure_frame(error: Exception) -> tuple[bytes, bool]:
    """The frame that tells a failure on this side of the environment, and whether the session is over."""
    failure = failure_of(error)
    next_step = "Connect again for a new environment session." if isinstance(error, EpisodeLost) else failure.next_step
    message = f"{failure.cause.rstrip('.')}. {next_step}"
    if isinstance(error, QueueTimeout | CapacityReached):
        return error_frame(message, "CAPACITY_REACHED", counts(error)), True
    if isinstance(error, FactoryFailed):
        return error_frame(message, error.code, {"factory_name": str(error.data.get("factory_name", "unknown"))}), True
    if isinstance(error, _GOES_ON):
        return error_frame(message, "EXECUTION_ERROR"), False
    return error_frame(message, "SESSION_ERROR"), True


def _field_errors(kind: str, value: JsonObject) -> list[JsonObject]:
    errors = [
        _field_error("extra_forbidden", key, "Extra inputs are not permitted", value[key])
        for key in value
        if key not in _MEMBERS[kind]
    ]
    if "data" in value and "data" in _MEMBERS[kind] and not isinstance(value["data"], dict):
        errors.append(_field_error("dict_type", "data", "Input should be a valid dictionary", value["data"]))
    if kind in ("step", "mcp") and "data" not in value:
        errors.append(_field_error("missing", "data", "Field required", value))
    return errors


def _field_error(kind: str, place: str, message: str, found: Any) -> JsonObject:
    return {"type": kind, "loc": [place], "msg": message, "input": found}
