"""The words of which a ScriptedServer's behaviour is made: turns, replies, pages, and the default environment."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from http import HTTPStatus
from typing import Any, NamedTuple

from websockets.datastructures import Headers
from websockets.http11 import Response

from openenv_client.frames import JsonObject

ANY_OBJECT: JsonObject = {"type": "object", "properties": {}}
PAGES: Mapping[str, JsonObject] = {
    "/health": {"status": "healthy"},
    "/schema": {
        "action": {"type": "object", "title": "Add", "properties": {"add": {"type": "integer"}}, "required": ["add"]},
        "observation": ANY_OBJECT,
        "state": ANY_OBJECT,
    },
    "/metadata": {"name": "counting", "description": "Adds up what it is told.", "version": "1.0.0"},
}


class Wire(Enum):
    """What can be done instead of replying."""

    SILENCE = "no reply at all"
    CLOSE = "close the WebSocket with code 1000"
    ABORT = "cut the TCP connection without a word"


Reply = JsonObject | str | bytes | Wire
"""A frame to send as JSON; a text or binary message to send as it is (garbage); or what to do instead."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One request and its reply in a script. `expect` is the whole request frame, None accepts any."""

    reply: Reply
    expect: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """An HTTP answer of the test's own. A str or bytes body is sent as it is, an object as JSON."""

    status: int
    body: JsonObject | str | bytes = field(default_factory=dict)


class Received(NamedTuple):
    """One request frame, and the number of the session (1, 2, ...) that it came on."""

    session: int
    frame: JsonObject


def observation(reward: float | None = None, done: bool = False, **fields: Any) -> JsonObject:
    """An observation frame."""
    return {"type": "observation", "data": {"observation": fields, "reward": reward, "done": done}}


def error(code: str, message: str = "no", **data: Any) -> JsonObject:
    """An error frame."""
    return {"type": "error", "data": {"message": message, "code": code, **data}}


class Counting:
    """The default environment, one count per session: `reset` sets `count` to 0, `step {"add": n}` adds n and rewards it; at
    10 and above it is done. Observations repeat the request's data as `echo`, so that replies can be told apart."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}

    def __call__(self, session: int, frame: JsonObject) -> Reply:
        kind, data = frame.get("type"), frame.get("data", {})
        if kind == "state":
            return {"type": "state", "data": {"count": self._counts.get(session, 0)}}
        if kind == "reset":
            self._counts[session] = 0
            return observation(count=0, echo=data)
        if not isinstance(data.get("add"), int):
            return error("VALIDATION_ERROR", "Invalid message", errors=[{"loc": ["add"], "msg": "Field required"}])
        count = self._counts[session] = self._counts.get(session, 0) + data["add"]
        return observation(float(data["add"]), count >= 10, count=count, echo=data)


def response(page: JsonObject | Page) -> Response:
    """The page as websockets' server sends it."""
    answer = page if isinstance(page, Page) else Page(200, page)
    is_json = isinstance(answer.body, dict)
    text = json.dumps(answer.body) if isinstance(answer.body, dict) else answer.body
    body = text.encode() if isinstance(text, str) else text
    headers = Headers(
        {
            "Content-Type": "application/json" if is_json else "text/plain",
            "Content-Length": str(len(body)),
            "Connection": "close",
        }
    )
    return Response(answer.status, HTTPStatus(answer.status).phrase, headers, body)
