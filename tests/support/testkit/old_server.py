"""A server shaped like openenv-core 0.1.x: HTTP only, one environment for everybody, a bare 500 for every bad action.

Recorded in `tests/catalog/old_server_0.1.1`; the environment is the recorded one: it echoes a message and counts.
"""

from __future__ import annotations

import asyncio
import socket
from types import TracebackType

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from openenv_client.frames import JsonObject


class OldServer:
    """Use as an async context manager; `url` is its base URL.

    `answers` replaces the answer of a path ("/step") by one of the test's own; while `hold` is set, requests that change the
    environment are carried out but not answered.
    """

    def __init__(self) -> None:
        self.requests: list[tuple[str, JsonObject]] = []
        self.answers: dict[str, Response] = {}
        self.received = asyncio.Event()
        self.release = asyncio.Event()
        self.release.set()
        self._steps = 0
        self._socket = socket.socket()
        routes = [
            Route("/health", self._health),
            Route("/reset", self._reset, methods=["POST"]),
            Route("/step", self._step, methods=["POST"]),
            Route("/state", self._state),
        ]
        app = Starlette(routes=routes)
        # ws="none": the real one answers a WebSocket handshake with 403.
        config = uvicorn.Config(app, log_level="critical", lifespan="off", ws="none", timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        self._serving: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def hold(self) -> None:
        """Answer no reset and no step until `release` is set."""
        self.release.clear()
        self.received.clear()

    def cut(self) -> None:
        """Cut every connection, as a killed server does."""
        for connection in list(self._server.server_state.connections):
            connection.transport.abort()

    async def __aenter__(self) -> OldServer:
        self._socket.bind(("127.0.0.1", 0))
        self._socket.listen()  # from here on clients wait in the backlog: no need to wait for the start
        self._serving = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release.set()
        self._server.should_exit = True
        assert self._serving is not None
        await self._serving

    async def _health(self, request: Request) -> Response:
        return self.answers.get("/health") or JSONResponse({"status": "healthy"})

    async def _reset(self, request: Request) -> Response:
        await self._note(request)
        self._steps = 0
        return self.answers.get("/reset") or self._observe("ready", 0.0)

    async def _step(self, request: Request) -> Response:
        body = await self._note(request)
        action = body.get("action", body)
        if set(action) != {"message"}:
            return self.answers.get("/step") or PlainTextResponse("Internal Server Error", 500)
        self._steps += 1
        return self.answers.get("/step") or self._observe(action["message"], float(len(action["message"])))

    async def _state(self, request: Request) -> Response:
        return self.answers.get("/state") or JSONResponse({"episode_id": None, "step_count": self._steps})

    def _observe(self, echoed: str, reward: float) -> Response:
        return JSONResponse({"observation": {"echoed": echoed, "n": self._steps}, "reward": reward, "done": False})

    async def _note(self, request: Request) -> JsonObject:
        body: JsonObject = await request.json()
        self.requests.append((request.url.path, body))
        self.received.set()
        await self.release.wait()
        return body
