"""Notifications that concern whoever listens, not one request: the tools of an environment have changed."""

from __future__ import annotations

import asyncio

TOOLS_CHANGED = "notifications/tools/list_changed"


class Subscription:
    """One listener's queue of notification methods; `None` in it is the end. Bounded: a listener who does not read misses
    repetitions, never the fact that something changed."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[str | None] = asyncio.Queue(16)

    def put(self, method: str | None) -> None:
        """Queue a notification; one more of a kind that waits already says nothing new."""
        if self.queue.full():
            self.queue.get_nowait()
        self.queue.put_nowait(method)


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
