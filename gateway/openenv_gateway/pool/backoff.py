"""How long to wait before the next launch after launches that failed. Pure but for its dice."""

from __future__ import annotations

import random

FIRST_S, LONGEST_S = 0.5, 30.0


class Backoff:
    """Doubles from FIRST_S to LONGEST_S with each failure in a row, with up to a quarter of jitter on top."""

    def __init__(self, dice: random.Random | None = None) -> None:
        self._dice = dice or random.Random()
        self._failures = 0
        self.launches_from = 0.0
        """The time from which the next launch is allowed, on the clock that `failed` is given."""

    def failed(self, now: float) -> float:
        """A launch failed. Returns the seconds until the next is allowed."""
        pause = min(LONGEST_S, FIRST_S * float(2**self._failures))
        self._failures += 1
        pause *= 1 + self._dice.random() / 4
        self.launches_from = now + pause
        return pause

    def succeeded(self) -> None:
        """A server works: the next failure is the first again."""
        self._failures = 0
        self.launches_from = 0.0
