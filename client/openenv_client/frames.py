"""OpenEnv's `/ws` frames: what is sent, and what a reply may be. Pure: no I/O, no clocks.

A request frame is `{"type": "reset"|"step"|"state"|"close", "data": {...}}`, a reply one of `observation`, `state`, `error`.
Frames carry no correlation id: any further top-level key is refused by servers, so replies are matched by order alone
(see `connection`). The wire is the same for openenv-core 0.2.0 to openenv 0.10.0.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Union

from openenv_client.errors import BadReply, CapacityReached, EnvironmentFault, FactoryFailed, SessionRefused

JsonObject = dict[str, Any]
Kind = Literal["reset", "step", "state"]
Loads = Callable[[Union[str, bytes]], Any]  # noqa: UP007  (evaluated at import on Python 3.10 by type tools)

Dumps = Callable[[Any], Union[str, bytes]]  # noqa: UP007

CLOSE = '{"type": "close"}'
REFUSALS = ("CAPACITY_REACHED", "FACTORY_ERROR")
"""Error codes of the unsolicited first frame with which a server refuses a session after the handshake."""


class Observation(NamedTuple):
    """The reply to reset and step. `reward` is None, an int, a float or a bool, as the server sent it; `metadata` is the
    frame's own metadata (newer servers repeat it inside the observation), empty when the frame has none."""

    observation: JsonObject
    reward: float | None
    done: bool
    metadata: JsonObject


@dataclass(frozen=True, slots=True)
class State:
    """The reply to state: the environment's whole state object."""

    state: JsonObject


@dataclass(frozen=True, slots=True)
class ErrorFrame:
    """An error reply. `data` is the whole data object: message, code and whatever the server adds to them."""

    message: str
    code: str
    data: JsonObject

    def as_exception(self) -> EnvironmentFault:
        """The failure that this frame reports about one request; the session goes on."""
        errors = self.data.get("errors")
        return EnvironmentFault(self.message, self.code, errors if isinstance(errors, list) else ())

    def as_refusal(self) -> SessionRefused:
        """The failure that this frame reports when it came unsolicited: there is no session."""
        if self.code == "CAPACITY_REACHED":
            return CapacityReached(self.message, self.data)
        if self.code == "FACTORY_ERROR":
            return FactoryFailed(self.message, self.data)
        return SessionRefused(self.message, self.code, self.data)


Reply = Union[Observation, State, ErrorFrame]  # noqa: UP007


def request_frame(kind: Kind, data: Mapping[str, Any] | None = None, dumps: Dumps = json.dumps) -> str | bytes:
    """The text frame for one request. `data` are reset's arguments or step's action; state carries none.

    `dumps` is the JSON encoder (to a str, or to bytes in UTF-8); what it raises is raised.
    """
    if kind == "state":
        return '{"type": "state"}'
    return dumps({"type": kind, "data": data if type(data) is dict else dict(data or {})})


def parse_reply(raw: str | bytes, loads: Loads = json.loads) -> Reply:
    """The reply in one received text frame.

    `loads` is the JSON decoder (raising ValueError on bad JSON). Raises BadReply for anything that is not one of the three
    reply frames: a wrong payload fails on arrival, never later and elsewhere.
    """
    kind, data = _frame(raw, loads)
    if kind == "observation":
        return parse_observation(data)
    if kind == "state":
        return State(data)
    if kind == "error":
        return _parse_error(data)
    raise BadReply("type", repr(kind))


def answer_data(raw: str | bytes, kind: Kind) -> JsonObject:
    """The data object of the reply to a request of that kind, just as it came: what users' hooks read.

    Raises EnvironmentFault for an error frame, BadReply for what is no such reply.
    """
    found, data = _frame(raw, json.loads)
    if found == "error":
        raise _parse_error(data).as_exception()
    if found != ("state" if kind == "state" else "observation"):
        raise BadReply("type", repr(found))
    if found == "observation":
        parse_observation(data)
    return data


def parse_observation(data: JsonObject) -> Observation:
    """The observation in the data of an `observation` frame, or in the body of an HTTP `/reset` or `/step` answer."""
    reward, done = data.get("reward"), data.get("done", False)
    if reward is not None and not isinstance(reward, (int, float)):
        raise BadReply("reward", type(reward).__name__)
    if not isinstance(done, bool):
        raise BadReply("done", type(done).__name__)
    metadata = data.get("metadata")
    return Observation(
        observation=_object(data.get("observation"), "observation"),
        reward=reward,
        done=done,
        metadata={} if metadata is None else _object(metadata, "metadata"),
    )


def _frame(raw: str | bytes, loads: Loads) -> tuple[object, JsonObject]:
    """Its type and its data."""
    try:
        frame = loads(raw)
    except (ValueError, RecursionError) as error:
        raise BadReply("the frame", f"no JSON ({error})") from error
    return _object(frame, "the frame").get("type"), _object(frame.get("data"), "data")


def _parse_error(data: JsonObject) -> ErrorFrame:
    message, code = data.get("message"), data.get("code")
    if not isinstance(message, str):
        raise BadReply("error message", type(message).__name__)
    return ErrorFrame(message, code if isinstance(code, str) else "UNKNOWN", data)


def _object(value: object, field: str) -> JsonObject:
    if not isinstance(value, dict):
        raise BadReply(field, f"{type(value).__name__}, not an object")
    return value
