"""One received frame → a reply whose every value can be encoded again. Pure.

Servers are Python programs: their JSON may hold NaN, Infinity, lone surrogates and integers of any length, none of which a
strict encoder writes. `parse_frame` accepts them all and hands on plain JSON values, so that no result fails on its way out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

import orjson

from openenv_client.errors import BadReply
from openenv_client.frames import ErrorFrame, Observation, Reply, State, parse_reply

MAX_DEPTH = 100
"""Levels of arrays and objects that a frame may have. orjson encodes 254, pydantic 255; results and records add a few."""

_INT64 = range(-(2**63), 2**63)
_CONTAINERS = (dict, list)
_COUNTED = 10_000
"""Bytes up to which brackets are simply counted."""


def parse_frame(raw: bytes | str) -> Reply:
    """The reply in one received text frame; nothing else than BadReply is raised, whatever the bytes.

    Every value in it can be encoded by orjson: non-finite numbers have become the strings "NaN", "Infinity", "-Infinity",
    lone surrogates U+FFFD, integers beyond 64 bits floats. Only `Observation.reward` may still be a non-finite float:
    `results` tells it. Nesting deeper than MAX_DEPTH is a BadReply.
    """
    try:
        frame = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return harden(parse_reply(_text(raw), _lenient_loads))
    # A frame with fewer brackets than levels allowed cannot be too deep: no walk for flat observations, however long.
    if _has_brackets(raw, MAX_DEPTH):
        check_depth(frame)
    return parse_reply(raw, lambda _: frame)


def harden(reply: Reply) -> Reply:
    """The same reply with the promises of `parse_frame`, for one that came another way (HTTP). Raises BadReply if too deep."""
    if isinstance(reply, Observation):
        check_depth([reply.observation, reply.metadata])
        observation, metadata = plain_value(reply.observation), plain_value(reply.metadata)
        return Observation(observation, _plain_reward(reply.reward), reply.done, metadata)
    if isinstance(reply, State):
        check_depth(reply.state)
        return State(plain_value(reply.state))
    check_depth(reply.data)
    return ErrorFrame(plain_text(reply.message), plain_text(reply.code), plain_value(reply.data))


def check_depth(value: Any) -> None:
    """Raises BadReply when a JSON value has more than MAX_DEPTH levels of arrays and objects."""
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        level = [child for node in level for child in _children(node) if type(child) in _CONTAINERS]
        if not level:
            return
    raise BadReply("the frame", f"nested deeper than {MAX_DEPTH} levels")


def plain_value(value: Any) -> Any:
    """A JSON value of at most MAX_DEPTH levels with the promises of `parse_frame`."""
    match value:
        case dict():
            return {plain_text(key): plain_value(item) for key, item in value.items()}
        case list():
            return [plain_value(item) for item in value]
        case str():
            return plain_text(value)
        case float() | int():
            return _plain_number(value)
    return value


def plain_text(value: str) -> str:
    """The text with U+FFFD for each lone surrogate."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


def number_name(value: float) -> str:
    """How a non-finite number is written where JSON has no number for it: "NaN", "Infinity" or "-Infinity"."""
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _text(raw: bytes | str) -> str:
    if isinstance(raw, str):
        return raw
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadReply("the frame", f"no UTF-8 text ({error})") from error


def _lenient_loads(text: bytes | str) -> Any:
    value = json.loads(text)
    check_depth(value)
    return value


def _has_brackets(raw: bytes | str, limit: int) -> bool:
    """Whether more than `limit` arrays and objects begin in it."""
    if isinstance(raw, str):
        raw = raw.encode("utf-8", "surrogatepass")
    if len(raw) <= _COUNTED:
        return raw.count(b"[") + raw.count(b"{") > limit
    left = limit
    for bracket in (b"[", b"{"):
        at = raw.find(bracket)  # many times faster than count where there is nothing to find, and it ends at the limit
        while at >= 0:
            if left == 0:
                return True
            left -= 1
            at = raw.find(bracket, at + 1)
    return False


def _children(node: Any) -> Iterable[Any]:
    if isinstance(node, dict):
        return node.values()
    return node if isinstance(node, list) else ()


def _plain_number(value: float) -> float | str:
    number = _in_range(value)
    return number if math.isfinite(number) else number_name(number)


def _plain_reward(reward: float | None) -> float | None:
    return None if reward is None else _in_range(reward)


def _in_range(value: float) -> float:
    if not isinstance(value, int) or value in _INT64:
        return value
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
