"""The line in which those wait who want an environment session: first come, first served, with a deadline."""

from __future__ import annotations

import asyncio
from bisect import insort
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Generic, TypeVar

from openenv_client.errors import CapacityReached

LOOK_S = 0.5
"""How often somebody who waits looks at the time."""

Place = TypeVar("Place")


@dataclass(eq=False, slots=True)
class Waiter(Generic[Place]):
    """Somebody in the line. `left` are the seconds of waiting that remain; time in which a server starts does not count, but
    `until` is the end in any case. `refusal` is the latest that a server told it."""

    ticket: int
    left: float
    until: float
    place: asyncio.Future[Place]
    refusal: CapacityReached | None = None


class Overdue(Exception):
    """A waiter's time in the line is over. (No TimeoutError: a launch that fails may be one, and is told as what it is.)"""


class Line(Generic[Place]):
    """Hands out tickets; who was refused keeps the ticket, and so the place in the line."""

    def __init__(self, queue_s: float, launch_s: float) -> None:
        self._queue_s, self._launch_s = queue_s, launch_s
        self._waiters: list[Waiter[Place]] = []
        self._tickets = count()

    def __len__(self) -> int:
        return len(self._waiters)

    def ticket(self) -> Waiter[Place]:
        """A new waiter, who is not in the line yet."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self._queue_s + self._launch_s
        return Waiter(next(self._tickets), self._queue_s, until, loop.create_future())

    def ahead_of(self, waiter: Waiter[Place]) -> int | None:
        """How many are served before `waiter`; None if it is not in the line."""
        return self._waiters.index(waiter) if waiter in self._waiters else None

    def join(self, waiter: Waiter[Place]) -> None:
        """Get into the line (again), at the place that the ticket gives."""
        waiter.place = asyncio.get_running_loop().create_future()
        insort(self._waiters, waiter, key=lambda other: other.ticket)

    def serve(self, place: Place) -> bool:
        """Give `place` to the first who still waits. Returns False when nobody does."""
        while self._waiters:
            waiter = self._waiters.pop(0)
            if not waiter.place.done():
                waiter.place.set_result(place)
                return True
        return False

    def fail(self, error: Exception) -> None:
        """Tell everybody that there will be no place."""
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.place.done():
                waiter.place.set_exception(error)

    async def wait(self, waiter: Waiter[Place], is_starting: Callable[[], bool]) -> Place:
        """The place that `waiter` gets. Raises Overdue when its time is over, and what `fail` was given.

        Whoever leaves early, by Overdue or cancellation, must call `leave`.
        """
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            done, _ = await asyncio.wait({waiter.place}, timeout=min(waiter.left, LOOK_S))
            if not is_starting():
                waiter.left -= loop.time() - began
            if done:
                return waiter.place.result()
            if waiter.left <= 0 or loop.time() >= waiter.until:
                raise Overdue

    def leave(self, waiter: Waiter[Place]) -> Place | None:
        """Get out of the line. Returns the place that was given in the very moment, which must be given back."""
        if waiter in self._waiters:
            self._waiters.remove(waiter)
        elif waiter.place.done() and waiter.place.exception() is None:
            return waiter.place.result()
        return None
