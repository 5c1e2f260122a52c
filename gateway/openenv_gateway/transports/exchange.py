"""One HTTP request of MCP and its response: JSON, or server-sent events as soon as something must be told before the answer.

The decision is put off: a call that is answered at once is plain JSON. A client that takes events, and whose call lasts, gets
progress notifications on its own response stream, or at least comments that keep proxies from cutting the connection.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import parse_qs

from starlette.types import Receive, Scope, Send

from openenv_client.frames import JsonObject
from openenv_gateway.mcp import jsonrpc
from openenv_gateway.mcp.inflight import FIRST_TICKS_S, InFlight, ticks
from openenv_gateway.mcp.jsonrpc import RpcError
from openenv_gateway.mcp.ladder import ROUTING_HEADERS
from openenv_gateway.transports.access import principal_in
from openenv_gateway.transports.guards import Refused

log = logging.getLogger(__name__)

Headers = tuple[tuple[str, str], ...]

EVENT_STREAM = "text/event-stream"
EVENT_HEADERS: Headers = (("cache-control", "no-cache, no-transform"), ("x-accel-buffering", "no"))
MAX_NAME = 128
ATTEND_AFTER_S = FIRST_TICKS_S[0]
"""Calls that are answered sooner are not attended: nobody gives up sooner, and attending costs a task."""
KEEP_ALIVE_S = 10.0


class Exchange:
    """Reads what the transport needs of a request, and sends its one response."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.method: str = scope["method"]
        self.principal = principal_in(scope).name
        self.receive = receive
        self._send = send
        self._raw = [(name.decode("latin-1").lower(), value.decode("latin-1").strip()) for name, value in scope["headers"]]
        self.headers = dict(self._raw)
        self._query: str = scope.get("query_string", b"").decode("latin-1")
        self._takes_json = self._takes_events = True
        self._is_streaming = False

    # --- the request ------------------------------------------------------------------------------------------------

    @property
    def lane_name(self) -> str | None:
        """NAME of `?session=NAME`. Raises Refused for an empty, doubled or overlong one."""
        if not self._query:
            return None
        try:
            names = parse_qs(self._query, keep_blank_values=True, errors="strict").get("session")
        except ValueError as error:
            raise Refused(400, "The URL's query is not valid UTF-8") from error
        if names is None:
            return None
        if len(names) != 1 or not 0 < len(names[0]) <= MAX_NAME:
            raise Refused(400, f"?session=NAME takes one name of 1 to {MAX_NAME} characters")
        return str(names[0])

    def check_accept(self, *, needs_events: bool = False) -> None:
        """Note what the client takes. Raises Refused 406 for neither JSON nor events, or no events where they are needed."""
        given = ",".join(value for name, value in self._raw if name == "accept") or "*/*"
        accepted = {part.split(";", 1)[0].strip().lower() for part in given.split(",")}
        self._takes_json = not {"application/json", "application/*", "*/*"}.isdisjoint(accepted)
        self._takes_events = not {EVENT_STREAM, "text/*"}.isdisjoint(accepted)
        if needs_events and not (self._takes_events or "*/*" in accepted):
            raise Refused(406, f"This is answered by a stream: Accept must list {EVENT_STREAM}")
        if not (self._takes_json or self._takes_events):
            raise Refused(406, "Accept must list application/json or text/event-stream (clients list both)")

    def check_routing_headers(self) -> None:
        """Raises RpcError when a header that decides about the request comes twice: readers could disagree about it."""
        names = [name for name, _ in self._raw if name in ROUTING_HEADERS]
        if len(names) != len(set(names)):
            doubled = next(name for name in names if names.count(name) > 1)
            raise RpcError(jsonrpc.HEADER_MISMATCH, f"The header {doubled} appears more than once")

    async def disconnected(self) -> None:
        """Return when the client has left. (Before that an empty http.request event may come.)"""
        while (await self.receive())["type"] != "http.disconnect":
            pass

    # --- a call that lasts ------------------------------------------------------------------------------------------

    @contextmanager
    def attended(self, request: InFlight, on_leave: Callable[[], object]) -> Iterator[None]:
        """While the block lasts: calls `on_leave` when the client leaves, and tells the client that its call is alive."""
        tasks: list[asyncio.Task[None]] = []

        def attend() -> None:
            tasks.append(asyncio.ensure_future(self._watch(on_leave)))
            if self._takes_events:
                tasks.append(asyncio.ensure_future(self._tick(request)))

        timer = asyncio.get_running_loop().call_later(ATTEND_AFTER_S, attend)
        try:
            yield
        finally:
            timer.cancel()
            for task in tasks:  # a watcher that outlives the response would take its end for a disconnect
                task.cancel()

    async def _watch(self, on_leave: Callable[[], object]) -> None:
        await self.disconnected()
        on_leave()

    async def _tick(self, request: InFlight) -> None:
        quiet = 0.0
        for number, pause in enumerate(ticks()):
            await asyncio.sleep(pause if number else 0.0)  # the first pause, ATTEND_AFTER_S, is over
            request.progress()
            quiet = 0.0 if request.outbox else quiet + pause
            if request.outbox:
                await self.flush(request)
            elif quiet >= KEEP_ALIVE_S:
                quiet = 0.0
                await self.stream(b": still working\n\n")

    async def flush(self, request: InFlight) -> None:
        """Send what is in the request's outbox, if the client takes events; else it is dropped, as there is no way to it."""
        messages, request.outbox = request.outbox, []
        if self._takes_events:
            for message in messages:
                await self.stream(event(message))

    # --- the response -----------------------------------------------------------------------------------------------

    async def start_stream(self, headers: Headers = ()) -> None:
        """Commit the response to an event stream."""
        self._is_streaming = True
        await self._start(200, EVENT_STREAM, (*headers, *EVENT_HEADERS))

    async def stream(self, data: bytes) -> None:
        """Send a piece of the event stream, which begins with the first."""
        if not self._is_streaming:
            await self.start_stream()
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end_stream(self) -> None:
        await self._send({"type": "http.response.body", "body": b""})

    async def answer(self, identity: jsonrpc.RequestId, result: JsonObject, headers: Headers = ()) -> None:
        await self.message(200, jsonrpc.result_message(identity, result), headers)

    async def answer_error(self, status: int, identity: jsonrpc.RequestId | None, error: RpcError) -> None:
        await self.message(status, jsonrpc.error_message(identity, error))

    async def message(self, status: int, body: bytes, headers: Headers = ()) -> None:
        """The last message of the response, in whichever form the response has by now."""
        if self._is_streaming:
            await self._send({"type": "http.response.body", "body": event(body)})
        elif status == 200 and not self._takes_json:
            await self.respond(200, event(body), EVENT_STREAM, (*headers, *EVENT_HEADERS))
        else:
            await self.respond(status, body, "application/json", headers)

    async def accept(self) -> None:
        """202: a notification or response was taken; there is no body."""
        await self.respond(202, b"")

    async def refuse(self, refused: Refused) -> None:
        error = RpcError(jsonrpc.INVALID_REQUEST, refused.message)
        await self.respond(refused.status, jsonrpc.error_message(None, error), "application/json", refused.headers)

    async def respond(self, status: int, body: bytes, kind: str | None = None, headers: Headers = ()) -> None:
        """A whole response."""
        await self._start(status, kind, (*headers, ("content-length", str(len(body)))))
        await self._send({"type": "http.response.body", "body": body})

    async def _start(self, status: int, kind: str | None, headers: Headers) -> None:
        raw = [(name.encode(), value.encode()) for name, value in headers]
        if kind is not None:
            raw.append((b"content-type", kind.encode()))
        await self._send({"type": "http.response.start", "status": status, "headers": raw})


def event(message: bytes) -> bytes:
    """One JSON-RPC message as a server-sent event. The encoder writes no line breaks, which would end the event."""
    return b"event: message\ndata: " + message + b"\n\n"
