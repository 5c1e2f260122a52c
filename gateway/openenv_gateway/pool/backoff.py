"""How long to wait before the next launch after launches that failed. Pure but for its dice."""

from __future__ import annotations

import random

FIRST_S, LONGEST_S = 0.5, 30.0
GIVEN_UP_S = 300.0
"""After too many failures in a row one launch is tried this often, and only if somebody calls: what is wrong may have been
mended from outside."""


class Backoff:
    """Doubles from FIRST_S to LONGEST_S with each failure in a row, with up to a quarter of jitter on top. After more than
    `most` failures in a row it has given up, and waits GIVEN_UP_S."""

    def __init__(self, most: int, dice: random.Random | None = None) -> None:
        self._most, self._dice = most, dice or random.Random()
        self._failures = 0
        self.launches_from = 0.0
        """The time from which the next launch is allowed, on the clock that `failed` is given."""

    @property
    def failures(self) -> int:
        """How many launches failed in a row."""
        return self._failures

    @property
    def has_given_up(self) -> bool:
        return self._failures > self._most

    def failed(self, now: float) -> float:
        """A launch failed. Returns the seconds until the next is allowed."""
        pause = min(LONGEST_S, FIRST_S * float(2 ** min(self._failures, 16)))
        self._failures += 1
        pause = GIVEN_UP_S if self.has_given_up else pause * (1 + self._dice.random() / 4)
        self.launches_from = now + pause
        return pause

    def succeeded(self) -> None:
        """A server works: the next failure is the first again."""
        self._failures = 0
        self.launches_from = 0.0
