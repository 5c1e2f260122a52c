"""Promises of time, on a machine that has other things to do: the suite itself runs in several processes."""

from __future__ import annotations

import os
from typing import Final

AT_MOST: Final = 10.0


def patience(seconds: float) -> float:
    """How long by the clock what is promised within `seconds` may take now: as many times longer as there were processes to
    run for each CPU in the last minute, but not more than AT_MOST times. On an idle machine it is `seconds`."""
    busy = os.getloadavg()[0] / len(os.sched_getaffinity(0))
    return seconds * min(AT_MOST, max(1.0, busy))
