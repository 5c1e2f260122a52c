"""The JSON-RPC of one connection that is the lane itself (stdio, WebSocket): both eras, requests side by side, no handles."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from openenv_client.frames import JsonObject
from openenv_gateway.mapping.tools import ToolKind
from openenv_gateway.mcp import jsonrpc
from openenv_gateway.mcp.broadcast import SUBSCRIPTION_KEY, TOOLS_CHANGED, acknowledgement, granted_of
from openenv_gateway.mcp.caller import Caller, lane_of
from openenv_gateway.mcp.inflight import InFlight, ticks
from openenv_gateway.mcp.jsonrpc import Notification, Request, Response, RpcError
from openenv_gateway.mcp.ladder import envelope_revision, is_modern_request
from openenv_gateway.mcp.revisions import LATEST_HANDSHAKE, Revision
from openenv_gateway.transports.gateway import Endpoint
from openenv_gateway.transports.openenv_rpc import CREATE, is_openenv

MAX_IN_FLIGHT = 256
"""Requests of one connection that may run at a time: lanes bound their calls themselves, this bounds everything else."""


class Conversation:
    """What one connection's messages come to. Answers are handed to `send`, each as soon as it is there."""

    def __init__(self, endpoint: Endpoint, principal: str, send: Callable[[bytes], Awaitable[None]]) -> None:
        """Raises LaneBusy when the endpoint holds as many sessions as it may."""
        self._endpoint, self._principal, self._send = endpoint, principal, send
        self._session = endpoint.sessions.new(principal, LATEST_HANDSHAKE)
        self._session.is_connection = True
        self._tasks: set[asyncio.Task[None]] = set()
        self._telling: asyncio.Task[None] | None = None

    async def take(self, message: str | bytes) -> None:
        """Begin to answer one message. Returns without waiting for its answer, so that a cancellation can be read."""
        if len(self._tasks) >= MAX_IN_FLIGHT:
            await self.refuse(f"{MAX_IN_FLIGHT} requests of this connection are running: wait for some")
            return
        task = asyncio.create_task(self._handle(message.encode() if isinstance(message, str) else message))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def refuse(self, reason: str) -> None:
        """Say that a message was not taken."""
        await self._send(jsonrpc.error_message(None, RpcError(jsonrpc.INVALID_REQUEST, reason)))

    async def end(self, patience_s: float = 0.0) -> None:
        """Give up what still runs after `patience_s`, and end the session and its lanes at once."""
        if self._telling is not None:
            self._telling.cancel()
        if self._tasks and patience_s:
            await asyncio.wait(self._tasks, timeout=patience_s)
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        lanes = tuple(self._session.lanes)
        self._endpoint.sessions.end(self._session)
        for lane in lanes:
            self._endpoint.environment.lanes.discard(lane)

    async def _handle(self, message: bytes) -> None:
        value: Any = None
        try:
            value = jsonrpc.decode(message)
            match jsonrpc.parse_message(value):
                case Request() as request:
                    await self._answer(request, value)
                case Notification(method="notifications/cancelled", params=params):
                    self._session.cancel(params.get("requestId"))
                case Notification() | Response():
                    pass  # nothing waits for them
        except RpcError as error:
            await self._send(jsonrpc.error_message(jsonrpc.id_of(value), error))

    async def _answer(self, message: Request, value: Any) -> None:
        request = InFlight(message.params, self._session.log_level)
        caller = Caller(self._revision(message, value), self._principal, self._session, request=request)
        self._session.begin(message.id, request)
        ticking = asyncio.ensure_future(self._tick(request)) if request.progress_token is not None else None
        try:
            result = await self._result(caller, message)
        finally:
            self._session.end(message.id)
            if ticking is not None:
                ticking.cancel()
        await self._flush(request)
        await self._send(jsonrpc.result_message(message.id, result))
        if message.method == "initialize":
            self._initialized(Revision(result["protocolVersion"]))

    def _initialized(self, revision: Revision) -> None:
        self._session.revision = revision
        if self._telling is None:
            self._telling = asyncio.create_task(self._tell({}), name="notifications of a connection")

    async def _result(self, caller: Caller, message: Request) -> JsonObject:
        if message.method == "subscriptions/listen" and caller.revision.is_modern:
            return await self._listen(message)
        if not is_openenv(message.method, message.params):
            return await self._endpoint.kernel.answer(caller, message.method, message.params)
        own = self._session.lane
        if message.method == CREATE:
            own = lane_of(caller, self._endpoint.environment, ToolKind.STATE, None)
        return await self._endpoint.openenv.answer(message.method, message.params, self._principal, own)

    async def _listen(self, message: Request) -> JsonObject:
        """Until the client cancels it or the gateway stops. Raises RpcError for a malformed filter."""
        granted, meta = granted_of(message), {SUBSCRIPTION_KEY: message.id}
        await self._send(acknowledgement(granted, meta))
        await self._tell({"_meta": meta}, frozenset({TOOLS_CHANGED} if granted else ()))
        return {"resultType": "complete", "_meta": meta}

    async def _tell(self, params: JsonObject, wanted: frozenset[str] = frozenset({TOOLS_CHANGED})) -> None:
        subscription = self._endpoint.broadcast.subscribe()
        try:
            while (method := await subscription.queue.get()) is not None:
                if method in wanted:
                    await self._send(jsonrpc.notification_message(method, params))
        finally:
            self._endpoint.broadcast.unsubscribe(subscription)

    async def _tick(self, request: InFlight) -> None:
        for pause in ticks():
            await asyncio.sleep(pause)
            request.progress()
            await self._flush(request)

    async def _flush(self, request: InFlight) -> None:
        messages, request.outbox = request.outbox, []
        for message in messages:
            await self._send(message)

    def _revision(self, message: Request, value: Any) -> Revision:
        if is_modern_request(None, value) or message.method == "server/discover":
            # A probe without the envelope: the error tells a dual-era client what to send, or to fall back to initialize.
            return envelope_revision(message.params)
        return self._session.revision
