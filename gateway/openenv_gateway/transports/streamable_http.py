"""MCP Streamable HTTP for one environment, both eras on one URL. A bare ASGI application.

Handshake era: `initialize` mints `Mcp-Session-Id`, later requests carry it. 2026-07-28: every POST stands alone. A URL with
`?session=NAME` names the lane itself, so it needs neither.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs

from starlette.types import Receive, Scope, Send

from openenv_client.frames import JsonObject
from openenv_gateway.errors import GatewayError
from openenv_gateway.mcp import jsonrpc
from openenv_gateway.mcp.caller import ANONYMOUS, Caller
from openenv_gateway.mcp.inflight import InFlight
from openenv_gateway.mcp.jsonrpc import Notification, Request, Response, RpcError
from openenv_gateway.mcp.ladder import ROUTING_HEADERS, check_modern_version, climb, handshake_revision, is_modern_request
from openenv_gateway.mcp.revisions import LATEST_HANDSHAKE, Revision
from openenv_gateway.mcp.sessions import McpSession
from openenv_gateway.transports.gateway import Endpoint
from openenv_gateway.transports.guards import Refused, check_content_type, read_body

log = logging.getLogger(__name__)

CANCELLED = -32800
"""The error code of a call that its client cancelled (nobody waits for it, but HTTP wants an answer)."""
THREE_WAYS = (
    "This request names no session. Three ways: send initialize first and repeat its Mcp-Session-Id header; "
    "or connect to this URL with ?session=NAME; or speak revision 2026-07-28 and pass the session_id that reset returns."
)
MODERN_STATUS = {
    jsonrpc.PARSE_ERROR: 400,
    jsonrpc.INVALID_REQUEST: 400,
    jsonrpc.INVALID_PARAMS: 400,
    jsonrpc.HEADER_MISMATCH: 400,
    jsonrpc.UNSUPPORTED_VERSION: 400,
    jsonrpc.METHOD_NOT_FOUND: 404,
}
EVENT_HEADERS = (("cache-control", "no-cache"), ("x-accel-buffering", "no"))
MAX_NAME = 128
WATCH_AFTER_S = 0.25


class StreamableHttp:
    """The endpoint `/envs/{env}/mcp`."""

    def __init__(self, endpoint: Endpoint, max_body_bytes: int) -> None:
        self._endpoint, self._max_body_bytes = endpoint, max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = _Exchange(scope, receive, send)
        try:
            await self._handle(exchange)
        except Refused as refused:
            await exchange.refuse(refused)

    async def _handle(self, exchange: _Exchange) -> None:
        match exchange.method:
            case "POST":
                await self._post(exchange)
            case "DELETE" if exchange.headers.get("mcp-protocol-version") != Revision.V2026_07_28:
                await self._delete(exchange)
            case method:
                raise Refused(405, f"{method} is not served here: POST JSON-RPC requests", (("allow", "POST, DELETE"),))

    async def _post(self, exchange: _Exchange) -> None:
        exchange.check_accept()
        check_content_type(exchange.headers.get("content-type"))
        body = await read_body(exchange.receive, exchange.headers.get("content-length"), self._max_body_bytes)
        value: Any = None
        try:
            exchange.check_routing_headers()
            value = jsonrpc.decode(body)
            version = exchange.headers.get("mcp-protocol-version")
            if is_modern_request(version, value):
                await self._modern(exchange, value)
            else:
                await self._handshake(exchange, value)
        except RpcError as error:
            await exchange.answer_error(400, jsonrpc.id_of(value), error)

    # --- 2026-07-28 -------------------------------------------------------------------------------------------------

    async def _modern(self, exchange: _Exchange, value: Any) -> None:
        message = jsonrpc.parse_message(value)
        if isinstance(message, Response):
            raise RpcError(jsonrpc.INVALID_REQUEST, "No request of the server waits for a response in this revision")
        if isinstance(message, Notification):
            check_modern_version(exchange.headers.get("mcp-protocol-version"))
            await exchange.accept()
            return
        revision = climb(exchange.headers, message.method, message.params)
        request = InFlight()
        caller = Caller(revision, ANONYMOUS, lane_name=exchange.lane_name)
        try:
            with exchange.watched(request.cancel):  # in this revision leaving is the cancel
                result = await self._endpoint.kernel.answer(caller, message.method, message.params)
        except RpcError as error:
            await exchange.answer_error(MODERN_STATUS.get(error.code, 200), message.id, error)
        except asyncio.CancelledError:
            if not request.absorb():
                raise
            log.info("the client closed the response stream: its call is given up")
        else:
            await exchange.answer(message.id, result)

    # --- handshake era ----------------------------------------------------------------------------------------------

    async def _handshake(self, exchange: _Exchange, value: Any) -> None:
        message = jsonrpc.parse_message(value)
        if isinstance(message, Request) and message.method == "initialize":
            await self._initialize(exchange, message)
            return
        session = self._session(exchange)
        if session is None:
            self._require_lane(exchange, message)
        revision = handshake_revision(exchange.headers.get("mcp-protocol-version"))
        if isinstance(message, Request):
            await self._request(exchange, session, revision, message)
            return
        if session is not None and isinstance(message, Notification) and message.method == "notifications/cancelled":
            session.cancel(message.params.get("requestId"))
        await exchange.accept()

    async def _initialize(self, exchange: _Exchange, message: Request) -> None:
        try:
            result = await self._endpoint.kernel.answer(Caller(LATEST_HANDSHAKE), message.method, message.params)
            session = self._endpoint.sessions.new(ANONYMOUS, Revision(result["protocolVersion"]))
        except RpcError as error:
            await exchange.answer_error(200, message.id, error)
        except GatewayError as error:
            raise Refused(503, str(error)) from error
        else:
            await exchange.answer(message.id, result, (("mcp-session-id", session.id),))

    async def _request(
        self, exchange: _Exchange, session: McpSession | None, revision: Revision, message: Request
    ) -> None:
        """Answer one request. Its session knows it, so that a cancellation finds it.

        A client that merely drops the connection has not cancelled (handshake era): the call goes on, and its lane keeps the
        outcome for the next call.
        """
        request = InFlight()
        if session is not None:
            session.begin(message.id, request)
            revision = session.revision
        caller = Caller(revision, ANONYMOUS, session, exchange.lane_name, request.gone)
        try:
            with exchange.watched(request.leave):
                result = await self._endpoint.kernel.answer(caller, message.method, message.params)
        except RpcError as error:
            await exchange.answer_error(200, message.id, error)
        except asyncio.CancelledError:
            if not request.absorb():
                raise
            await exchange.answer_error(200, message.id, RpcError(CANCELLED, "The request was cancelled"))
        else:
            await exchange.answer(message.id, result)
        finally:
            if session is not None:
                session.end(message.id)

    def _session(self, exchange: _Exchange) -> McpSession | None:
        identity = exchange.headers.get("mcp-session-id")
        if identity is None:
            return None
        session = self._endpoint.sessions.find(identity, ANONYMOUS)
        if session is None:
            raise Refused(404, "Unknown or expired Mcp-Session-Id: send initialize to get a new one")
        return session

    @staticmethod
    def _require_lane(exchange: _Exchange, message: jsonrpc.Message) -> None:
        lane_free = isinstance(message, Request) and message.method in ("tools/list", "ping")
        if exchange.lane_name is None and not lane_free:
            raise RpcError(jsonrpc.INVALID_REQUEST, THREE_WAYS)

    async def _delete(self, exchange: _Exchange) -> None:
        if "mcp-session-id" not in exchange.headers:
            raise Refused(400, "DELETE ends the session in its Mcp-Session-Id header, which is missing")
        session = self._session(exchange)
        assert session is not None
        self._endpoint.sessions.end(session)
        await exchange.respond(200, b"")


class _Exchange:
    """One HTTP request and its response."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.method: str = scope["method"]
        self.receive = receive
        self._send = send
        self._raw = [(name.decode("latin-1").lower(), value.decode("latin-1").strip()) for name, value in scope["headers"]]
        self.headers = dict(self._raw)
        self._query: str = scope.get("query_string", b"").decode("latin-1")
        self._as_events = False

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

    def check_accept(self) -> None:
        """Answers are JSON where the client takes it, else one server-sent event. Raises Refused 406 for neither."""
        given = ",".join(value for name, value in self._raw if name == "accept") or "*/*"
        accepted = [part.split(";", 1)[0].strip().lower() for part in given.split(",")]
        if not {"application/json", "application/*", "*/*"}.isdisjoint(accepted):
            return
        if {"text/event-stream", "text/*"}.isdisjoint(accepted):
            raise Refused(406, "Accept must list application/json or text/event-stream (clients list both)")
        self._as_events = True

    def check_routing_headers(self) -> None:
        """Raises RpcError when a header that decides about the request comes twice: readers could disagree about it."""
        names = [name for name, _ in self._raw if name in ROUTING_HEADERS]
        if len(names) != len(set(names)):
            doubled = next(name for name in names if names.count(name) > 1)
            raise RpcError(jsonrpc.HEADER_MISMATCH, f"The header {doubled} appears more than once")

    @contextmanager
    def watched(self, on_leave: Callable[[], object]) -> Iterator[None]:
        """Calls `on_leave` when the client leaves during the block.

        Looked for only in calls that take longer than WATCH_AFTER_S: nobody gives up sooner, and a watcher costs a task.
        """
        watchers: list[asyncio.Task[None]] = []

        async def watch() -> None:
            while (await self.receive())["type"] != "http.disconnect":
                pass
            on_leave()

        def start() -> None:
            watchers.append(asyncio.ensure_future(watch()))

        timer = asyncio.get_running_loop().call_later(WATCH_AFTER_S, start)
        try:
            yield
        finally:
            timer.cancel()
            for watcher in watchers:  # one that outlives the response would take its end for a disconnect
                watcher.cancel()

    async def answer(self, identity: jsonrpc.RequestId, result: JsonObject, headers: tuple[tuple[str, str], ...] = ()) -> None:
        await self._message(200, jsonrpc.result_message(identity, result), headers)

    async def answer_error(self, status: int, identity: jsonrpc.RequestId | None, error: RpcError) -> None:
        await self._message(status, jsonrpc.error_message(identity, error))

    async def _message(self, status: int, body: bytes, headers: tuple[tuple[str, str], ...] = ()) -> None:
        if self._as_events and status == 200:
            event = b"event: message\ndata: " + body + b"\n\n"
            await self.respond(200, event, "text/event-stream", (*headers, *EVENT_HEADERS))
        else:
            await self.respond(status, body, "application/json", headers)

    async def accept(self) -> None:
        """202: a notification or response was taken; there is no body."""
        await self.respond(202, b"")

    async def refuse(self, refused: Refused) -> None:
        error = RpcError(jsonrpc.INVALID_REQUEST, refused.message)
        await self.respond(refused.status, jsonrpc.error_message(None, error), "application/json", refused.headers)

    async def respond(
        self, status: int, body: bytes, kind: str | None = None, headers: tuple[tuple[str, str], ...] = ()
    ) -> None:
        raw = [(b"content-length", str(len(body)).encode())]
        if kind is not None:
            raw.append((b"content-type", kind.encode()))
        raw += [(name.encode(), value.encode()) for name, value in headers]
        await self._send({"type": "http.response.start", "status": status, "headers": raw})
        await self._send({"type": "http.response.body", "body": body})

