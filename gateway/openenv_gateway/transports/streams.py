"""Streams without a request of their own to answer: GET (handshake era) and `subscriptions/listen` (2026-07-28)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from openenv_gateway.mcp.broadcast import (
    SUBSCRIPTION_KEY,
    TOOLS_CHANGED,
    Broadcast,
    Subscription,
    acknowledgement,
    granted_of,
)
from openenv_gateway.mcp.jsonrpc import INVALID_REQUEST, Request, RpcError, notification_message
from openenv_gateway.mcp.mailbox import Posted
from openenv_gateway.mcp.sessions import McpSession
from openenv_gateway.transports.exchange import KEEP_ALIVE_S, Exchange, event
from openenv_gateway.transports.withdrawal import Withdrawals


async def serve_get(exchange: Exchange, session: McpSession, broadcast: Broadcast, withdrawals: Withdrawals) -> None:
    """The session's GET stream, until the client leaves, the session ends, its token is withdrawn, or a newer GET takes over: a
    client that reconnects overtakes the end of its own old connection."""
    subscription = broadcast.subscribe()
    if session.stream is not None:
        session.stream.put(None)
    session.stream = subscription
    try:
        await exchange.start_stream()
        await exchange.stream(b": connected\n\n")
        with withdrawals.watched(exchange.caller, subscription.end):
            await _relay(exchange, subscription, lambda method: event(notification_message(method, {})))
        if subscription.reason is not None:
            await exchange.stream(f": {subscription.reason}\n\n".encode())
        await exchange.end_stream()
    finally:
        broadcast.unsubscribe(subscription)
        if session.stream is subscription:
            session.stream = None


async def serve_resumed(exchange: Exchange, session: McpSession, posted: Posted, withdrawals: Withdrawals) -> None:
    """The answer to a call whose client lost its stream, or was told to come back, and does. Waits for it if need be."""
    subscription = Subscription()
    answering = asyncio.ensure_future(posted.answer())
    answering.add_done_callback(lambda _: subscription.put(None))
    try:
        await exchange.start_stream()
        await exchange.stream(posted.priming)
        with withdrawals.watched(exchange.caller, subscription.end):
            await _relay(exchange, subscription, lambda method: b"")
        if answering.done():
            await exchange.stream(event(answering.result()))
            posted.heard()
            if session.mailbox is not None:
                session.mailbox.close(posted)
        elif subscription.reason is not None:
            await exchange.stream(f": {subscription.reason}\n\n".encode())
        await exchange.end_stream()
    finally:
        answering.cancel()


async def serve_listen(exchange: Exchange, request: Request, broadcast: Broadcast, withdrawals: Withdrawals) -> None:
    """The stream of one `subscriptions/listen`: first which notifications were granted, then these, each with the id of the
    subscription. It ends with a result, or with an error when its token was withdrawn. Raises RpcError for a malformed filter,
    before anything is sent."""
    granted, meta = granted_of(request), {SUBSCRIPTION_KEY: request.id}
    subscription = broadcast.subscribe()

    def render(method: str) -> bytes:
        wanted = granted and method == TOOLS_CHANGED
        return event(notification_message(method, {"_meta": meta})) if wanted else b""

    try:
        await exchange.start_stream()
        await exchange.stream(event(acknowledgement(granted, meta)))
        with withdrawals.watched(exchange.caller, subscription.end):
            await _relay(exchange, subscription, render)
    finally:
        broadcast.unsubscribe(subscription)
    if subscription.reason is not None:
        await exchange.answer_error(200, request.id, RpcError(INVALID_REQUEST, subscription.reason))
        return
    await exchange.answer(request.id, {"resultType": "complete", "_meta": meta})


async def _relay(exchange: Exchange, subscription: Subscription, render: Callable[[str], bytes]) -> None:
    leaves = asyncio.ensure_future(exchange.disconnected())
    try:
        async for method in _notifications(subscription, leaves):
            if data := (b": keep-alive\n\n" if method is None else render(method)):
                await exchange.stream(data)
    finally:
        leaves.cancel()


async def _notifications(subscription: Subscription, leaves: asyncio.Future[None]) -> AsyncIterator[str | None]:
    """What comes, and None whenever nothing came for KEEP_ALIVE_S. Ends with the subscription or when the client leaves."""
    while True:
        coming: asyncio.Future[str | None] = asyncio.ensure_future(subscription.queue.get())
        both: set[asyncio.Future[Any]] = {coming, leaves}
        try:
            await asyncio.wait(both, timeout=KEEP_ALIVE_S, return_when=asyncio.FIRST_COMPLETED)
            if leaves.done():
                return
            if not coming.done():
                yield None
                continue
            method = coming.result()
            if method is None:
                return
            yield method
        finally:
            coming.cancel()
