"""Notifications that concern whoever listens, not one request: the tools of an environment have changed."""

from __future__ import annotations

import asyncio

from openenv_client.frames import JsonObject
from openenv_gateway.mcp.jsonrpc import INVALID_PARAMS, Request, RpcError, notification_message

TOOLS_CHANGED = "notifications/tools/list_changed"
SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"
"""The key in `_meta` that names a subscription of 2026-07-28 by the id of its `subscriptions/listen`."""


class Subscription:
    """One listener's queue of notification methods; `None` in it is the end. Bounded: a listener who does not read misses
    repetitions, never the fact that something changed."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[str | None] = asyncio.Queue(16)
        self.reason: str | None = None
        """Why it was ended, where its listener must be told."""

    def put(self, method: str | None) -> None:
        """Queue a notification; one more of a kind that waits already says nothing new."""
        if self.queue.full():
            self.queue.get_nowait()
        self.queue.put_nowait(method)

    def end(self, reason: str) -> None:
        """End it, for a reason that its listener is told."""
        self.reason = reason
        self.put(None)


class Broadcast:
    """Hands a notification to every subscription."""

    def __init__(self) -> None:
        self._subscriptions: set[Subscription] = set()

    def __len__(self) -> int:
        return len(self._subscriptions)

    def subscribe(self) -> Subscription:
        """A new listener; it must be taken off again with `unsubscribe`."""
        subscription = Subscription()
        self._subscriptions.add(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        self._subscriptions.discard(subscription)

    def publish(self, method: str) -> None:
        for subscription in self._subscriptions:
            subscription.put(method)

    def close(self) -> None:
        """End every listener's stream."""
        for subscription in self._subscriptions:
            subscription.put(None)


def granted_of(request: Request) -> JsonObject:
    """Which of the notifications that a `subscriptions/listen` wants there are. Raises RpcError for a malformed filter."""
    wanted = request.params.get("notifications")
    if not isinstance(wanted, dict):
        raise RpcError(INVALID_PARAMS, 'subscriptions/listen needs "notifications", an object')
    return {"toolsListChanged": True} if wanted.get("toolsListChanged") is True else {}


def acknowledgement(granted: JsonObject, meta: JsonObject) -> bytes:
    """The first message of a subscription."""
    return notification_message("notifications/subscriptions/acknowledged", {"notifications": granted, "_meta": meta})
