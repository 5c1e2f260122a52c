"""The demo on a socket: `/ws` sessions and three pages, on `websockets` alone, which starts in a tenth of a web framework's
time. Sessions beyond the limit are refused as OpenEnv's servers refuse them: accepted handshake, one error frame, close 1000.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from urllib.parse import urlsplit

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from openenv_gateway.demo.pages import PAGES
from openenv_gateway.demo.session import Session, error_frame

CLOSE_TIMEOUT_S = 1.0


class Demo:
    """The environment server's state: who is connected. `say` gets one line per reset and step."""

    def __init__(self, max_sessions: int, say: Callable[[str], None] | None = None) -> None:
        self.max_sessions = max_sessions
        self.active_sessions = 0
        self._say = say

    async def play(self, connection: ServerConnection) -> None:
        """Serve one WebSocket from handshake to close."""
        try:
            if self.active_sessions >= self.max_sessions:
                await connection.send(self._full())
                return
            self.active_sessions += 1
            try:
                await self._converse(connection)
            finally:
                self.active_sessions -= 1
        except ConnectionClosed:
            return  # the client has left: its session is over, and there is nobody to tell

    async def _converse(self, connection: ServerConnection) -> None:
        session = Session()
        async for message in connection:
            answer = session.receive(message)
            if answer.frame is not None:
                await connection.send(answer.frame)
            if answer.note is not None and self._say is not None:
                self._say(answer.note)
            if answer.ends:
                return

    def _full(self) -> str:
        active, limit = self.active_sessions, self.max_sessions
        message = f"Server at capacity: {active}/{limit} sessions active. Cannot accept new connections."
        return error_frame("CAPACITY_REACHED", message, active_sessions=active, max_sessions=limit)


def page(connection: ServerConnection, request: Request) -> Response | None:
    """The answer to a plain GET; None for a WebSocket handshake on `/ws`, which then goes on."""
    path = urlsplit(request.path).path
    if "Upgrade" in request.headers:
        return None if path == "/ws" else connection.respond(HTTPStatus.FORBIDDEN, "")
    found = path in PAGES
    response = connection.respond(
        HTTPStatus.OK if found else HTTPStatus.NOT_FOUND, PAGES[path] if found else '{"detail": "Not Found"}'
    )
    del response.headers["Content-Type"]
    response.headers["Content-Type"] = "application/json"
    return response


async def start(host: str, port: int, *, max_sessions: int = 64, say: Callable[[str], None] | None = None) -> Server:
    """A listening server; the caller closes it (it is an async context manager). Raises OSError if it cannot listen."""
    demo = Demo(max_sessions, say)
    return await serve(demo.play, host, port, process_request=page, close_timeout=CLOSE_TIMEOUT_S)


def bound_port(server: Server) -> int:
    """The port that a started server listens on."""
    port: int = server.sockets[0].getsockname()[1]
    return port
