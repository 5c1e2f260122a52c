"""The JSON-RPC of one connection that is the lane itself: both eras, requests side by side, one MCP session, no handles."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from openenv_client.frames import JsonObject
from openenv_gateway.mapping.tools import ToolKind
from openenv_gateway.mcp import jsonrpc
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
        self._session.is_process = True
        self._tasks: set[asyncio.Task[None]] = set()

    async def take(self, message: str | bytes) -> None:
        """Begin to answer one message. Returns without waiting for its answer, so that a cancellation can be read."""
        if len(self._tasks) >= MAX_IN_FLIGHT:
            error = RpcError(jsonrpc.INVALID_REQUEST, f"{MAX_IN_FLIGHT} requests of this connection are running: wait for some")
            await self._send(jsonrpc.error_message(None, error))
            return
        task = asyncio.create_task(self._handle(message.encode() if isinstance(message, str) else message))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def end(self) -> None:
        """Give up what runs, and end the session and its lanes at once."""
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
        if message.method == "initialize":
            self._session.revision = Revision(result["protocolVersion"])
        await self._send(jsonrpc.result_message(message.id, result))

    async def _result(self, caller: Caller, message: Request) -> JsonObject:
        if not is_openenv(message.method, message.params):
            return await self._endpoint.kernel.answer(caller, message.method, message.params)
        own = self._session.lane
        if message.method == CREATE:
            own = lane_of(caller, self._endpoint.environment, ToolKind.STATE, None)
        return await self._endpoint.openenv.answer(message.method, message.params, self._principal, own)

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
