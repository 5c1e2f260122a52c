"""The latest results that were too large to be shown whole, kept for reading: in memory, up to a size.

Each lane has a reading key, which is unguessable and is no handle: whoever has it can read, not play, and only the lane's own
principal can use it at all.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Sequence

from openenv_gateway.mapping.whole import Part
from openenv_gateway.sessions.lane import Lane
from openenv_gateway.sessions.phases import Phase

LANE_BYTES = 4 * 2**20
ENVIRONMENT_BYTES = 64 * 2**20
"""What is kept for one lane, and for all lanes of one environment; beyond either the oldest goes."""

Parts = tuple[Part, ...]


class Shelf:
    """What is kept for one lane, and how many bytes it has. Results are numbered from 1 on, up to `placed`; `numbers` are those
    that are still there, oldest first."""

    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self.key = secrets.token_urlsafe(24)
        self.placed = self.size = 0
        self.results: OrderedDict[int, Parts] = OrderedDict()

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(self.results)


class LatestResults:
    """The shelves of one environment's lanes."""

    def __init__(self, lane_bytes: int = LANE_BYTES, environment_bytes: int = ENVIRONMENT_BYTES) -> None:
        self.lane_bytes, self._limit = lane_bytes, environment_bytes
        self._by_lane: dict[Lane, Shelf] = {}
        self._by_key: dict[str, Shelf] = {}
        self._in_order: OrderedDict[tuple[str, int], int] = OrderedDict()
        self._size = 0

    def __len__(self) -> int:
        return len(self._by_lane)

    def shelf(self, lane: Lane) -> Shelf:
        """The lane's shelf, with its reading key. One that is made for a lane that has ended is nobody's."""
        shelf = self._by_lane.get(lane)
        if shelf is None:
            shelf = Shelf(lane)
            if lane.phase is not Phase.CLOSED:
                self._by_lane[lane] = self._by_key[shelf.key] = shelf
        return shelf

    def find(self, key: str, principal: str) -> Shelf | None:
        """The shelf with that reading key, None when there is none or it is somebody else's (never told apart)."""
        shelf = self._by_key.get(key)
        return shelf if shelf is not None and shelf.lane.principal == principal else None

    def place(self, lane: Lane) -> tuple[str, int]:
        """(reading key, number) under which the lane's next result can be kept."""
        shelf = self.shelf(lane)
        shelf.placed += 1
        return shelf.key, shelf.placed

    def keep(self, lane: Lane, parts: Sequence[Part]) -> None:
        """Keep a result under the latest number that `place` gave for the lane."""
        shelf = self.shelf(lane)
        if shelf.key not in self._by_key:
            return
        size = sum(len(part.body) for part in parts)
        shelf.results[shelf.placed] = tuple(parts)
        self._in_order[shelf.key, shelf.placed] = size
        shelf.size += size
        self._size += size
        while shelf.size > self.lane_bytes:
            self._drop(shelf, next(iter(shelf.results)))
        while self._size > self._limit:
            key, number = next(iter(self._in_order))
            self._drop(self._by_key[key], number)

    def forget(self, lane: Lane) -> None:
        """The lane has ended: nothing of it can be read any more."""
        shelf = self._by_lane.pop(lane, None)
        if shelf is not None:
            for number in shelf.numbers:
                self._drop(shelf, number)
            del self._by_key[shelf.key]

    def _drop(self, shelf: Shelf, number: int) -> None:
        del shelf.results[number]
        size = self._in_order.pop((shelf.key, number))
        shelf.size -= size
        self._size -= size
