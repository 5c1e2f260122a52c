"""MCP Streamable HTTP for one environment, both eras on one URL. A bare ASGI application.

Handshake era: `initialize` mints `Mcp-Session-Id`, later requests carry it. 2026-07-28: every POST stands alone. A URL with
`?session=NAME` names the lane itself, so it needs neither.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from starlette.types import Receive, Scope, Send

from openenv_client.frames import JsonObject
from openenv_gateway.errors import GatewayError
from openenv_gateway.mcp import jsonrpc
from openenv_gateway.mcp.caller import Caller
from openenv_gateway.mcp.inflight import InFlight
from openenv_gateway.mcp.jsonrpc import Notification, Request, Response, RpcError
from openenv_gateway.mcp.kernel import LANE_FREE
from openenv_gateway.mcp.ladder import check_modern_version, climb, handshake_revision, is_modern_request
from openenv_gateway.mcp.mirrored import check_mirrors
from openenv_gateway.mcp.revisions import LATEST_HANDSHAKE, Revision
from openenv_gateway.mcp.sessions import McpSession
from openenv_gateway.transports.access import principal_in
from openenv_gateway.transports.exchange import ATTEND_AFTER_S, AsgiExchange, Exchange
from openenv_gateway.transports.gateway import Endpoint
from openenv_gateway.transports.guards import Refused, check_content_type, read_body
from openenv_gateway.transports.headers import Head
from openenv_gateway.transports.lasting import LastingCalls
from openenv_gateway.transports.openenv_rpc import names_openenv_session
from openenv_gateway.transports.streams import serve_get, serve_listen, serve_resumed
from openenv_gateway.transports.withdrawal import Withdrawals

log = logging.getLogger(__name__)

CANCELLED = -32800
"""The error code of a call that its client cancelled (nobody waits for it, but HTTP wants an answer)."""
MAX_BATCH = 100
NAMELESS = (
    "This request names no session. Ways to name one: send initialize first and repeat its Mcp-Session-Id header; "
    "or connect to this URL with ?session=NAME; or send openenv/session/create first and repeat its params.session_id; "
    "or speak revision 2026-07-28 and pass the session_id that reset returns."
)
MODERN_STATUS = {
    jsonrpc.PARSE_ERROR: 400,
    jsonrpc.INVALID_REQUEST: 400,
    jsonrpc.INVALID_PARAMS: 400,
    jsonrpc.HEADER_MISMATCH: 400,
    jsonrpc.UNSUPPORTED_VERSION: 400,
    jsonrpc.METHOD_NOT_FOUND: 404,
}


class StreamableHttp:
    """The endpoint `/envs/{env}/mcp`."""

    def __init__(self, endpoint: Endpoint, max_body_bytes: int, withdrawals: Withdrawals) -> None:
        self._endpoint, self.max_body_bytes, self._withdrawals = endpoint, max_body_bytes, withdrawals
        self.lasting = LastingCalls(ATTEND_AFTER_S)
        self._poll_after_s = endpoint.environment.settings.poll_after_s
        self._may_mirror = endpoint.environment.settings.mapping.schemas == "native"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        head = Head(scope["method"], scope["headers"], scope.get("query_string", b""))
        exchange = AsgiExchange(head, principal_in(scope), receive, send, self.lasting)
        try:
            await self._handle(exchange)
        except Refused as refused:
            await exchange.refuse(refused)

    async def _handle(self, exchange: Exchange) -> None:
        is_modern = exchange.head.version == Revision.V2026_07_28
        match exchange.head.method:
            case "POST":
                self.check_post(exchange.head)
                declared = exchange.head.headers.get("content-length")
                await self.post(exchange, await read_body(exchange.receive, declared, self.max_body_bytes))
            case "GET" if not is_modern:
                await self._get(exchange)
            case "DELETE" if not is_modern:
                await self._delete(exchange)
            case method:
                allowed = "POST" if is_modern else "POST, GET, DELETE"
                raise Refused(405, f"{method} is not served here: POST JSON-RPC requests", (("allow", allowed),))

    @staticmethod
    def check_post(head: Head) -> None:
        """Raises Refused for a POST that may not even have a body read."""
        head.check_accept()
        check_content_type(head.headers.get("content-type"))

    async def post(self, exchange: Exchange, body: bytes) -> None:
        """Answer the POST of `body`, whose head `check_post` let pass. Raises Refused when nothing was answered yet."""
        value: Any = None
        try:
            exchange.check_routing_headers()
            value = jsonrpc.decode(body)
            version = exchange.head.version
            if is_modern_request(version, value):
                await self._modern(exchange, value)
            elif isinstance(value, list):
                await self._batch(exchange, value)
            elif names_openenv_session(value, exchange.head.headers):
                await self._openenv(exchange, value)
            else:
                await self._handshake(exchange, value)
        except RpcError as error:
            await exchange.answer_error(400, jsonrpc.id_of(value), error)

    async def _openenv(self, exchange: Exchange, value: Any) -> None:
        """A request of OpenEnv's own JSON-RPC. A client that leaves has not cancelled, as in the handshake era."""
        request = InFlight()
        with exchange.attended(request, request.leave):
            response = await self._endpoint.openenv.respond(value, exchange.principal, gone=request.gone)
        await exchange.message(200, response)

    # --- 2026-07-28 -------------------------------------------------------------------------------------------------

    async def _modern(self, exchange: Exchange, value: Any) -> None:
        message = jsonrpc.parse_message(value)
        if isinstance(message, Response):
            raise RpcError(jsonrpc.INVALID_REQUEST, "No request of the server waits for a response in this revision")
        if isinstance(message, Notification):
            check_modern_version(exchange.head.version)
            await exchange.accept()
            return
        revision = climb(exchange.head.headers, message.method, message.params)
        if self._may_mirror and message.method == "tools/call":
            await check_mirrors(self._endpoint.environment, message.params, exchange.head.headers)
        if message.method == "subscriptions/listen":
            exchange.head.check_accept(needs_events=True)
            await serve_listen(exchange, message, self._endpoint.broadcast, self._withdrawals)
            return
        request = InFlight(message.params, loop=self.lasting.loop)
        caller = Caller(revision, exchange.principal, lane_name=exchange.head.lane_name, request=request)
        try:
            with exchange.attended(request, request.cancel):  # in this revision leaving is the cancel
                result = await self._endpoint.kernel.answer(caller, message.method, message.params)
        except RpcError as error:
            await exchange.answer_error(MODERN_STATUS.get(error.code, 200), message.id, error)
        except asyncio.CancelledError:
            if not request.absorb():
                raise
            log.info("the client closed the response stream: its call is given up")
        else:
            await exchange.flush(request)
            await exchange.answer(message.id, result)

    # --- handshake era ----------------------------------------------------------------------------------------------

    async def _handshake(self, exchange: Exchange, value: Any) -> None:
        message = jsonrpc.parse_message(value)
        if isinstance(message, Request) and message.method == "initialize":
            await self._initialize(exchange, message)
            return
        session = self._session(exchange)
        if session is None:
            self._require_lane(exchange, message)
        revision = handshake_revision(exchange.head.version)
        if isinstance(message, Request):
            await self._request(exchange, session, revision, message)
            return
        self._notified(session, message)
        await exchange.accept()

    async def _initialize(self, exchange: Exchange, message: Request) -> None:
        try:
            result = await self._endpoint.kernel.answer(Caller(LATEST_HANDSHAKE), message.method, message.params)
            session = self._endpoint.sessions.new(exchange.principal, Revision(result["protocolVersion"]))
        except RpcError as error:
            await exchange.answer_error(200, message.id, error)
        except GatewayError as error:
            raise Refused(503, str(error)) from error
        else:
            await exchange.answer(message.id, result, (("mcp-session-id", session.id),))

    async def _request(
        self, exchange: Exchange, session: McpSession | None, revision: Revision, message: Request
    ) -> None:
        """Answer one request. Its session knows it, so that a cancellation finds it.

        A client that merely drops the connection has not cancelled (handshake era): the call goes on, and its lane keeps the
        outcome for the next call, unless the client comes back for it (see `mailbox`).
        """
        request = InFlight(message.params, session.log_level if session else None, self.lasting.loop)
        if session is not None:
            session.begin(message.id, request)
            revision = session.revision
            if revision is Revision.V2025_11_25:
                exchange.keep_answer, exchange.poll_after_s = session.post, self._poll_after_s
        caller = Caller(revision, exchange.principal, session, exchange.head.lane_name, request)
        try:
            with exchange.attended(request, request.leave):
                result = await self._endpoint.kernel.answer(caller, message.method, message.params)
        except RpcError as error:
            await exchange.answer_error(200, message.id, error)
        except asyncio.CancelledError:
            if not request.absorb():
                raise
            await exchange.answer_error(200, message.id, RpcError(CANCELLED, "The request was cancelled"))
        else:
            if request.outbox:
                await exchange.flush(request)
            await exchange.answer(message.id, result)
        finally:
            if session is not None:
                session.end(message.id)

    async def _batch(self, exchange: Exchange, values: list[Any]) -> None:
        """Several messages in one body: a part of 2025-03-26 alone. They are carried out in order; each request is answered."""
        session = self._session(exchange)
        if session is None or session.revision is not Revision.V2025_03_26:
            raise RpcError(jsonrpc.INVALID_REQUEST, "Batches exist in a session of revision 2025-03-26 only: send one message")
        if not values or len(values) > MAX_BATCH:
            raise RpcError(jsonrpc.INVALID_REQUEST, f"A batch holds 1 to {MAX_BATCH} messages")
        answers = [answer for value in values if (answer := await self._batched(exchange, session, value)) is not None]
        if answers:
            await exchange.message(200, b"[" + b",".join(answers) + b"]")
        else:
            await exchange.accept()

    async def _batched(self, exchange: Exchange, session: McpSession, value: Any) -> bytes | None:
        try:
            message = jsonrpc.parse_message(value)
            if not isinstance(message, Request):
                self._notified(session, message)
                return None
            if message.method == "initialize":
                raise RpcError(jsonrpc.INVALID_REQUEST, "initialize must not be part of a batch")
            return jsonrpc.result_message(message.id, await self._batched_result(exchange, session, message))
        except RpcError as error:
            return jsonrpc.error_message(jsonrpc.id_of(value), error)

    async def _batched_result(self, exchange: Exchange, session: McpSession, message: Request) -> JsonObject:
        """Raises RpcError, also when the request was cancelled: the rest of its batch goes on."""
        request = InFlight(message.params)
        session.begin(message.id, request)
        caller = Caller(session.revision, exchange.principal, session, exchange.head.lane_name, request)
        try:
            return await self._endpoint.kernel.answer(caller, message.method, message.params)
        except asyncio.CancelledError:
            if not request.absorb():
                raise
            raise RpcError(CANCELLED, "The request was cancelled") from None
        finally:
            session.end(message.id)

    @staticmethod
    def _notified(session: McpSession | None, message: jsonrpc.Message) -> None:
        if session is not None and isinstance(message, Notification) and message.method == "notifications/cancelled":
            session.cancel(message.params.get("requestId"))

    async def _get(self, exchange: Exchange) -> None:
        exchange.head.check_accept(needs_events=True)
        if exchange.head.session_id is None:
            raise Refused(400, "GET opens the stream of the session in its Mcp-Session-Id header, which is missing")
        session = self._session(exchange)
        assert session is not None
        posted = session.mailbox.find(exchange.head.headers.get("last-event-id")) if session.mailbox is not None else None
        if posted is not None:
            await serve_resumed(exchange, session, posted, self._withdrawals)
            return
        await serve_get(exchange, session, self._endpoint.broadcast, self._withdrawals)

    def _session(self, exchange: Exchange) -> McpSession | None:
        identity = exchange.head.session_id
        if identity is None:
            return None
        session = self._endpoint.sessions.find(identity, exchange.principal)
        if session is None:
            raise Refused(404, "Unknown or expired Mcp-Session-Id: send initialize to get a new one")
        return session

    @staticmethod
    def _require_lane(exchange: Exchange, message: jsonrpc.Message) -> None:
        lane_free = isinstance(message, Request) and message.method in LANE_FREE
        if exchange.head.lane_name is None and not lane_free:
            raise RpcError(jsonrpc.INVALID_REQUEST, NAMELESS)

    async def _delete(self, exchange: Exchange) -> None:
        if exchange.head.session_id is None:
            raise Refused(400, "DELETE ends the session in its Mcp-Session-Id header, which is missing")
        session = self._session(exchange)
        assert session is not None
        self._endpoint.sessions.end(session)
        await exchange.respond(200, b"")

