"""Fails in every way that was met on real servers. FAULT chooses what is wrong with the server, `do` what a step does.

| FAULT | the server |
| --- | --- |
| `prints` | prints 1 MB before it serves, then is well |
| `dies` | prints its last words and exits with 3 before it serves |
| `hangs` | never serves |
| `factory` | is healthy, but cannot build its environment |
| `reset_raises` | fails every reset |
| `reset_error` | answers a reset with done = true and an error in metadata |
| `no_schema` | has no /schema |
| `no_ws` | refuses the WebSocket handshake with 403 |
| `no_health` | answers /health with 503 |
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any, Literal

from framework import serve
from openenv.core.env_server import Action, Environment, Observation, State
from pydantic import Field
from starlette.responses import PlainTextResponse

FOR_EVER_S = 3600.0
ASGI = Callable[[dict[str, Any], Any, Any], Awaitable[None]]


class FaultyAction(Action):
    """Do something, perhaps something wrong."""

    do: Literal["nothing", "sleep", "key_error", "bare_text", "not_a_number", "exit", "freeze"] = Field(
        ..., description="nothing, sleep (some seconds), key_error, bare_text, not_a_number, exit (the process), freeze (it)"
    )
    seconds: float = Field(default=0.0, ge=0, description="How long sleep takes")


class FaultyObservation(Observation):
    """What was done."""

    did: str = Field(default="", description="What the step did")
    value: float = Field(default=0.0, description="A number")


class FaultyEnvironment(Environment):
    """An environment for those who must stand failures. There is nothing to win."""

    SUPPORTS_CONCURRENT_SESSIONS = True
    FAULT = ""

    def __init__(self) -> None:
        super().__init__()
        if self.FAULT == "factory":
            raise RuntimeError("the game's level file is missing")
        self._state = State()

    def reset(self, seed: int | None = None, episode_id: str | None = None, **_: Any) -> FaultyObservation:
        if self.FAULT == "reset_raises":
            raise RuntimeError("no level today")
        self._state = State(episode_id=episode_id)
        if self.FAULT == "reset_error":
            return FaultyObservation(done=True, metadata={"status": "error", "error": "LEVEL_KEY is not set"})
        return FaultyObservation(did="reset")

    def step(self, action: FaultyAction, timeout_s: float | None = None, **_: Any) -> FaultyObservation:
        self._state.step_count += 1
        value = MISHAPS[action.do](action.seconds)
        return FaultyObservation(did=action.do, value=value, reward=value)

    @property
    def state(self) -> State:
        return self._state


def sleep(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def key_error(_: float) -> float:
    return {"a": 1.0}["nowhere"]


def bare_text(_: float) -> float:
    raise ValueError(99)


def exit_process(_: float) -> float:
    print("the game crashed", file=sys.stderr, flush=True)
    os._exit(7)


def freeze(_: float) -> float:
    os.kill(os.getpid(), signal.SIGSTOP)
    return 0.0


MISHAPS: dict[str, Callable[[float], float]] = {
    "nothing": lambda _: 0.0,
    "sleep": sleep,
    "key_error": key_error,
    "bare_text": bare_text,
    "not_a_number": lambda _: float("nan"),
    "exit": exit_process,
    "freeze": freeze,
}


LACKING = {"no_schema": ("/schema", 404), "no_health": ("/health", 503), "no_ws": ("/ws", 403)}


def lacking(inner: ASGI, path: str, status: int) -> ASGI:
    """The server without one of its paths."""

    async def outer(scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan" or scope["path"].removeprefix(scope.get("root_path", "")) != path:
            await inner(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await PlainTextResponse("not today", status)(scope, receive, send)

    return outer


def serve_with(fault: str) -> ASGI:
    """The server with this fault."""
    environment = type("FaultyEnvironment", (FaultyEnvironment,), {"FAULT": fault, "__doc__": FaultyEnvironment.__doc__})
    server: ASGI = serve(environment, FaultyAction, FaultyObservation)
    return lacking(server, *LACKING[fault]) if fault in LACKING else server


FAULT = os.environ.get("FAULT", "")
if FAULT == "prints":
    print("\n".join(f"line {number} " + "." * 100 for number in range(9500)), flush=True)
elif FAULT == "dies":
    print("cannot find the level file: giving up", file=sys.stderr, flush=True)
    sys.exit(3)
elif FAULT == "hangs":
    threading.Event().wait(FOR_EVER_S)

app = serve_with(FAULT)
