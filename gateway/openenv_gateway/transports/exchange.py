"""One HTTP request of MCP and its response: JSON, or server-sent events as soon as something must be told before the answer.

The decision is put off: a call that is answered at once is plain JSON. A client that takes events, and whose call lasts, gets
progress notifications on its own response stream, or at least comments that keep proxies from cutting the connection.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from types import TracebackType
from typing import Self

from starlette.types import Message, Receive, Send

from openenv_client.frames import JsonObject
from openenv_gateway.mcp import jsonrpc
from openenv_gateway.mcp.inflight import FIRST_TICKS_S, InFlight, ticks
from openenv_gateway.mcp.jsonrpc import RpcError
from openenv_gateway.mcp.ladder import ROUTING_HEADERS
from openenv_gateway.mcp.mailbox import Posted
from openenv_gateway.transports.guards import Refused
from openenv_gateway.transports.headers import EVENT_STREAM, Head
from openenv_gateway.transports.lasting import LastingCalls
from openenv_gateway.transports.tokens import Principal

log = logging.getLogger(__name__)

Fields = tuple[tuple[str, str], ...]

EVENT_HEADERS: Fields = (("cache-control", "no-cache, no-transform"), ("x-accel-buffering", "no"))
ATTEND_AFTER_S = FIRST_TICKS_S[0]
"""Calls that are answered sooner are not attended: nobody gives up sooner, and attending costs a task."""
KEEP_ALIVE_S = 10.0
PRIME_AFTER_S = 2.0
"""A call that lasts so long is answered by a stream to which its client can come back. Shorter ones are seldom interrupted."""


class Exchange:
    """Reads what the transport needs of a request, and sends its one response. Subclasses say by which way."""

    def __init__(self, head: Head, caller: Principal, lasting: LastingCalls) -> None:
        self.head, self.caller = head, caller
        self.principal = caller.name
        self.lasting = lasting
        self._is_streaming = False
        self.keep_answer: Callable[[InFlight], Posted] | None = None
        """Makes a place for the answer to a call that lasts, where its client may come back for it."""
        self.poll_after_s: float | None = None
        """When its stream is closed then, so that its client does come back; None: never."""
        self._posted: Posted | None = None
        self._is_left_alone = False
        self._request: InFlight | None = None
        self._on_leave: Callable[[], object] = _nothing
        self._tasks: tuple[asyncio.Task[None], ...] = ()

    async def receive(self) -> Message:
        """ASGI's receive."""
        raise NotImplementedError

    async def send(self, message: Message) -> None:
        """ASGI's send."""
        raise NotImplementedError

    # --- the request ------------------------------------------------------------------------------------------------

    def check_routing_headers(self) -> None:
        """Raises RpcError when a header that decides about the request comes twice: readers could disagree about it."""
        doubled = self.head.headers.doubled(ROUTING_HEADERS)
        if doubled is not None:
            raise RpcError(jsonrpc.HEADER_MISMATCH, f"The header {doubled} appears more than once")

    async def disconnected(self) -> None:
        """Return when the client has left. (Before that an empty http.request event may come.)"""
        while (await self.receive())["type"] != "http.disconnect":
            pass

    # --- a call that lasts ------------------------------------------------------------------------------------------

    def attended(self, request: InFlight, on_leave: Callable[[], object]) -> Self:
        """For a `with` block. While it lasts: calls `on_leave` when the client leaves, and tells the client that its call is
        alive."""
        self._request, self._on_leave = request, on_leave
        return self

    def __enter__(self) -> None:
        self.lasting.begin(self)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.lasting.end(self)
        for task in self._tasks:  # a watcher that outlives the response would take its end for a disconnect
            task.cancel()
        self._tasks = ()

    def attend(self) -> None:
        """The call has lasted for a while."""
        assert self._request is not None, "only calls in an `attended` block are attended"
        watch = asyncio.ensure_future(self._watch(self._on_leave))
        self._tasks = (watch, asyncio.ensure_future(self._tick(self._request))) if self.head.accepted.events else (watch,)

    async def _watch(self, on_leave: Callable[[], object]) -> None:
        await self.disconnected()
        on_leave()

    async def _tick(self, request: InFlight) -> None:
        quiet = lasted = 0.0
        for number, pause in enumerate(ticks()):
            await asyncio.sleep(pause if number else 0.0)  # the first pause, ATTEND_AFTER_S, is over
            lasted += pause
            request.progress()
            quiet = 0.0 if request.outbox else quiet + pause
            if request.outbox or lasted >= PRIME_AFTER_S:
                await self._prime(request)
            if request.outbox:
                await self.flush(request)
            elif quiet >= KEEP_ALIVE_S:
                quiet = 0.0
                await self.stream(b": still working\n\n")
            if self._posted is not None and self.poll_after_s is not None and lasted >= self.poll_after_s:
                await self._leave_alone()
                return

    async def _prime(self, request: InFlight) -> None:
        """Begin the stream with the event that a client may come back with, where it may."""
        if self.keep_answer is not None and self._posted is None:
            self._posted = self.keep_answer(request)
            await self.stream(self._posted.priming)

    async def _leave_alone(self) -> None:
        """Close the stream although the call goes on: its client comes back for the answer, or has left for all we know."""
        self._tasks[0].cancel()  # it would take the end of the response for a leave that comes later
        self._is_left_alone = True
        self._on_leave()
        await self.end_stream()

    async def flush(self, request: InFlight) -> None:
        """Send what is in the request's outbox, if the client takes events; else it is dropped, as there is no way to it."""
        if not request.outbox:
            return
        messages, request.outbox = request.outbox, []
        if self.head.accepted.events and not self._is_left_alone:
            for message in messages:
                await self.stream(event(message))

    # --- the response -----------------------------------------------------------------------------------------------

    async def start_stream(self, headers: Fields = ()) -> None:
        """Commit the response to an event stream."""
        self._is_streaming = True
        raw = [*_encoded((*headers, *EVENT_HEADERS)), (b"content-type", EVENT_STREAM.encode())]
        await self.send({"type": "http.response.start", "status": 200, "headers": raw})

    async def stream(self, data: bytes) -> None:
        """Send a piece of the event stream, which begins with the first."""
        if not self._is_streaming:
            await self.start_stream()
        await self.send({"type": "http.response.body", "body": data, "more_body": True})

    async def end_stream(self) -> None:
        await self.send({"type": "http.response.body", "body": b""})

    async def answer(self, identity: jsonrpc.RequestId, result: JsonObject, headers: Fields = ()) -> None:
        await self.message(200, jsonrpc.result_message(identity, result), headers)

    async def answer_error(self, status: int, identity: jsonrpc.RequestId | None, error: RpcError) -> None:
        await self.message(status, jsonrpc.error_message(identity, error))

    async def message(self, status: int, body: bytes, headers: Fields = ()) -> None:
        """The last message of the response, in whichever form the response has by now."""
        if self._posted is not None:
            self._posted.finish(body)
        if self._is_left_alone:
            return
        if self._is_streaming:
            await self.send({"type": "http.response.body", "body": event(body)})
        elif status == 200 and not self.head.accepted.json:
            await self.respond(200, event(body), EVENT_STREAM, (*headers, *EVENT_HEADERS))
        else:
            await self.respond(status, body, "application/json", headers)

    async def accept(self) -> None:
        """202: a notification or response was taken; there is no body."""
        await self.respond(202, b"")

    async def refuse(self, refused: Refused) -> None:
        error = RpcError(jsonrpc.INVALID_REQUEST, refused.message)
        await self.respond(refused.status, jsonrpc.error_message(None, error), "application/json", refused.headers)

    async def respond(self, status: int, body: bytes, kind: str | None = None, headers: Fields = ()) -> None:
        """A whole response."""
        raw = [(b"content-length", b"%d" % len(body)), *_encoded(headers)]
        if kind is not None:
            raw.append((b"content-type", kind.encode()))
        await self.send({"type": "http.response.start", "status": status, "headers": raw})
        await self.send({"type": "http.response.body", "body": body})


class AsgiExchange(Exchange):
    """A request that came through ASGI."""

    def __init__(self, head: Head, caller: Principal, receive: Receive, send: Send, lasting: LastingCalls) -> None:
        super().__init__(head, caller, lasting)
        self._receive, self._send = receive, send

    async def receive(self) -> Message:
        return await self._receive()

    async def send(self, message: Message) -> None:
        await self._send(message)


def _nothing() -> None:
    """What is done about a leave that nobody wants to know of."""


def _encoded(headers: Fields) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in headers]


def event(message: bytes) -> bytes:
    """One JSON-RPC message as a server-sent event. The encoder writes no line breaks, which would end the event."""
    return b"event: message\ndata: " + message + b"\n\n"
