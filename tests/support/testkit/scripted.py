"""An environment server whose behaviour a test writes down: real HTTP pages and a real `/ws`, on a port of its own.

    async with ScriptedServer() as server:                     # a counting environment, see `counting`
        connection = await Connection.open(server.url)
        server.hold_reply()                                     # replies are computed, but not sent ...
        with pytest.raises(ReplyTimeout): await connection.exchange("step", {"add": 1}, 0.05)
        server.release_reply()                                  # ... until now

    ScriptedServer([Turn(observation(n=0), expect={"type": "reset", "data": {}}), Turn(Wire.ABORT)])   # a script
    ScriptedServer.recorded("chess_env")                        # a recorded transcript and its pages
    ScriptedServer(respond=my_function)                         # (session number, request frame) -> reply
    ScriptedServer(handler=my_coroutine)                        # a whole session by hand, see ScriptedSession
    ScriptedServer(capacity=1), ScriptedServer(factory_error="no ROM")   # refuses as real servers do

A script is played by all sessions together, in the order in which requests come. A request that it does not expect closes the
session with 1011 and makes leaving the `async with` block fail. Nothing here sleeps: `until` waits for what tests count.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import TracebackType

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.frames import Frame, Opcode
from websockets.http11 import Request as Handshake
from websockets.http11 import Response
from websockets.protocol import Event

from openenv_client.frames import JsonObject
from testkit import catalog
from testkit.script import PAGES, Counting, Page, Received, Reply, Turn, Wire, error, observation, response

__all__ = ["Counting", "Page", "Received", "ScriptedServer", "ScriptedSession", "Turn", "Wire", "error", "observation"]


class ScriptedSession:
    """One client's WebSocket, as a `handler` sees it."""

    def __init__(self, server: ScriptedServer, number: int, websocket: ServerConnection) -> None:
        self.number = number
        self.websocket = websocket
        self._server = server

    async def receive(self) -> JsonObject | None:
        """The next request frame, counted in `server.requests`; None after a close frame."""
        frame = json.loads(await self.websocket.recv())
        if frame == {"type": "close"}:
            self._server.note_close_frame()
            return None
        self._server.note_request(Received(self.number, frame))
        return frame  # type: ignore[no-any-return]

    async def send(self, reply: Reply) -> None:
        """Reply, as soon as no hold applies."""
        await self._server.released()
        if reply is Wire.ABORT:
            self.websocket.transport.abort()
        elif reply is Wire.CLOSE:
            await self.websocket.close()
        elif not isinstance(reply, Wire):
            await self.websocket.send(json.dumps(reply) if isinstance(reply, dict) else reply)


class _CountingPings(ServerConnection):
    """Counts the pings that a client sends."""

    on_ping: Callable[[], None]

    def process_event(self, event: Event) -> None:
        if isinstance(event, Frame) and event.opcode is Opcode.PING:
            self.on_ping()
        super().process_event(event)


class ScriptedServer:
    """See the module. Everything that it counts can be read at any time, and waited for with `until`."""

    def __init__(
        self,
        script: Iterable[Turn] | None = None,
        *,
        respond: Callable[[int, JsonObject], Reply] | None = None,
        handler: Callable[[ScriptedSession], Awaitable[None]] | None = None,
        capacity: int | None = None,
        factory_error: str | None = None,
        pages: Mapping[str, JsonObject | Page] | None = None,
    ) -> None:
        self.script = list(script or ())
        """Turns that are still to be played."""
        self.requests: list[Received] = []
        self.handshakes: list[Handshake] = []
        self.sessions_opened = 0
        self.sessions_open = 0
        self.close_frames = 0
        self.pings = 0
        self.deviations: list[str] = []
        self.capacity, self.factory_error = capacity, factory_error
        self.pages: dict[str, JsonObject | Page] = {**PAGES, **(pages or {})}
        self._respond = self._play if script is not None else respond or Counting()
        self._handler = handler or self._converse
        self._held = False
        self._server: Server | None = None
        self._change: asyncio.Future[None] | None = None

    @classmethod
    def recorded(cls, env: str) -> ScriptedServer:
        """A server that plays what a real one was recorded to say over `/ws`, with its pages. Left out are the recorder's own
        trials, which no client sends: other frame types, extra keys, missing data."""
        turns = [
            Turn(exchange.recv, exchange.send)
            for exchange in catalog.exchanges(env)
            if _sendable(exchange.send)
        ]
        return cls(turns, pages={"/schema": catalog.load(env, "schema"), "/metadata": catalog.load(env, "metadata")})

    @property
    def url(self) -> str:
        """The base URL, as an OpenEnv client takes it."""
        assert self._server is not None, "the server runs only inside its `async with` block"
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def hold_reply(self) -> None:
        """Keep every reply back from now on, in all sessions; requests are still received and counted."""
        self._held = True

    def release_reply(self) -> None:
        """Send what was held, and hold no longer."""
        self._held = False
        self._notify()

    def cut(self) -> None:
        """Cut the TCP connections of all sessions, as a killed server does."""
        for websocket in self._running.connections:
            websocket.transport.abort()

    async def hang_up(self, code: int = 1000, reason: str = "") -> None:
        """Close all sessions with a closing handshake."""
        for websocket in list(self._running.connections):
            await websocket.close(code, reason)

    async def push(self, reply: Reply) -> None:
        """Send an unsolicited frame on every session."""
        for websocket in list(self._running.connections):
            await websocket.send(json.dumps(reply) if isinstance(reply, dict) else str(reply))

    async def until(self, condition: Callable[[], bool], timeout_s: float = 5.0) -> None:
        """Wait until something that this server counts makes the condition true; TimeoutError after `timeout_s`."""
        async with asyncio.timeout(timeout_s):
            while not condition():
                await self._changed()

    async def released(self) -> None:
        """Wait while replies are held."""
        while self._held:
            await self._changed()

    def note_request(self, request: Received) -> None:
        """Count a request."""
        self.requests.append(request)
        self._notify()

    def note_close_frame(self) -> None:
        """Count a close frame."""
        self.close_frames += 1
        self._notify()

    async def __aenter__(self) -> ScriptedServer:
        self._change = asyncio.get_running_loop().create_future()
        self._server = await serve(
            self._session,
            "127.0.0.1",
            0,
            process_request=self._page,
            create_connection=_CountingPings,
            compression=None,
            ping_interval=None,
            close_timeout=1.0,
            max_size=None,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release_reply()
        self._running.close()
        await self._running.wait_closed()
        if failure is None and self.deviations:
            raise AssertionError("The client left the script:\n" + "\n".join(self.deviations))

    @property
    def _running(self) -> Server:
        assert self._server is not None, "the server runs only inside its `async with` block"
        return self._server

    async def _session(self, websocket: ServerConnection) -> None:
        self.sessions_opened += 1
        self.sessions_open += 1
        session = ScriptedSession(self, self.sessions_opened, websocket)
        self._notify()
        try:
            refusal = self._refusal()
            if refusal is not None:
                await websocket.send(json.dumps(refusal))
            else:
                await self._handler(session)
        except ConnectionClosed:
            return  # the client left, as it may
        finally:
            self.sessions_open -= 1
            self._notify()

    def _refusal(self) -> JsonObject | None:
        if self.factory_error is not None:
            return error("FACTORY_ERROR", self.factory_error, factory_name="Scripted")
        if self.capacity is not None and self.sessions_open > self.capacity:
            message = f"Server at capacity: {self.capacity}/{self.capacity} sessions active."
            return error("CAPACITY_REACHED", message, active_sessions=self.capacity, max_sessions=self.capacity)
        return None

    async def _converse(self, session: ScriptedSession) -> None:
        while (frame := await session.receive()) is not None:
            reply = self._respond(session.number, frame)
            if self.deviations:
                await session.websocket.close(1011, "not in the script")
                return
            await session.send(reply)

    def _play(self, session: int, frame: JsonObject) -> Reply:
        turn = self.script.pop(0) if self.script else None
        if turn is not None and turn.expect in (None, frame):
            return turn.reply
        expected = "nothing more" if turn is None else json.dumps(turn.expect)
        self.deviations.append(f"session {session} sent {json.dumps(frame)}, the script expects {expected}")
        return Wire.SILENCE

    def _page(self, websocket: ServerConnection, request: Handshake) -> Response | None:
        path = request.path.partition("?")[0]
        page = self.pages.get(path)
        if path == "/ws" and page is None:
            self.handshakes.append(request)
            assert isinstance(websocket, _CountingPings)
            websocket.on_ping = self._count_ping
            return None
        return response(page if page is not None else Page(404, {"detail": "Not Found"}))

    def _count_ping(self) -> None:
        self.pings += 1
        self._notify()

    def _notify(self) -> None:
        if self._change is not None:
            done, self._change = self._change, asyncio.get_running_loop().create_future()
            done.set_result(None)

    async def _changed(self) -> None:
        assert self._change is not None, "the server runs only inside its `async with` block"
        await asyncio.shield(self._change)


def _sendable(frame: JsonObject) -> bool:
    if frame.get("type") == "state":
        return frame == {"type": "state"}
    return frame.get("type") in ("reset", "step") and set(frame) == {"type", "data"}
