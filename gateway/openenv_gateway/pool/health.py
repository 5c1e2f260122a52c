"""Whether a server that gives no sign of life is given up. Pure.

An environment whose step blocks its whole server looks the same as one that hangs: while a request is under way, nobody can
tell before that request's own time is over. Only from then on its silence counts.
"""

from __future__ import annotations

from enum import Enum

PROBES = 5
"""How often a server is asked within the time after which it is given up."""


class Verdict(Enum):
    WELL = "well"
    WAIT = "wait"
    """Silent, but not for long enough."""
    GIVE_UP = "give up"


def judge(now: float, seen: float, busy: float, silence_s: float) -> Verdict:
    """`seen`: the latest sign of life; `busy`: the latest moment at which a request that was not overdue was under way there
    (0.0: none was)."""
    if now - seen < silence_s / PROBES:
        return Verdict.WELL
    return Verdict.GIVE_UP if now - max(seen, busy) >= silence_s else Verdict.WAIT
