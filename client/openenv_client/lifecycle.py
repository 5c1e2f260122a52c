"""The life of one environment session as seen from the wire, in one table. Pure.

`SENT` and `ARRIVED` say nothing about whether somebody still waits: a caller that gave up changes nothing on the wire, the
reply is owed all the same.
"""

from __future__ import annotations

from enum import Enum


class Phase(Enum):
    """Where a session stands."""

    __hash__ = object.__hash__  # members are looked up in tables at every call, and the one of Enum is written in Python

    FRESH = "fresh"
    """Connected, nothing sent: a frame that comes now is the server's refusal."""
    OPENING = "opening"
    """The first request is sent: what comes is its reply, or the refusal that was under way already."""
    IDLE = "idle"
    """Every request is answered and every answer taken."""
    SENT = "sent"
    """A request is out, its reply is not here."""
    ARRIVED = "arrived"
    """The reply is here and not taken."""
    LAST = "last"
    """The reply is here and not taken, and the connection is gone: it is the last one."""
    REFUSED = "refused"
    """The server gave no session."""
    LOST = "lost"
    """The connection is gone, or cannot be trusted any more."""
    CLOSED = "closed"
    """This side closed it."""


class Event(Enum):
    """What can happen to a session."""

    __hash__ = object.__hash__

    SEND = "a request is sent"
    REPLY = "a frame comes"
    REFUSAL = "a frame comes that refuses the session"
    TAKE = "the reply is taken"
    GONE = "the connection ends"
    CLOSE = "this side closes"


OWING = frozenset({Phase.OPENING, Phase.SENT, Phase.ARRIVED, Phase.LAST})
"""Phases in which one request has no answer that somebody took."""
WAITING = frozenset({Phase.OPENING, Phase.SENT})
"""Phases in which a frame is due."""
OVER = frozenset({Phase.REFUSED, Phase.LOST, Phase.CLOSED})
"""Phases without a way back."""

_P, _E = Phase, Event
MOVES: dict[tuple[Phase, Event], Phase] = {
    (_P.FRESH, _E.SEND): _P.OPENING,
    (_P.FRESH, _E.REPLY): _P.LOST,  # unsolicited and no refusal: nothing after it could be matched
    (_P.FRESH, _E.REFUSAL): _P.REFUSED,
    (_P.FRESH, _E.GONE): _P.LOST,
    (_P.OPENING, _E.REPLY): _P.ARRIVED,
    (_P.OPENING, _E.REFUSAL): _P.REFUSED,
    (_P.OPENING, _E.GONE): _P.LOST,
    (_P.IDLE, _E.SEND): _P.SENT,
    (_P.IDLE, _E.REPLY): _P.LOST,  # a frame that nobody asked for must never answer the next request
    (_P.IDLE, _E.GONE): _P.LOST,
    (_P.SENT, _E.REPLY): _P.ARRIVED,
    (_P.SENT, _E.GONE): _P.LOST,
    (_P.ARRIVED, _E.TAKE): _P.IDLE,
    (_P.ARRIVED, _E.REPLY): _P.LOST,
    (_P.ARRIVED, _E.GONE): _P.LAST,
    (_P.LAST, _E.TAKE): _P.LOST,
    # Over is over: what is still in the pipe changes nothing.
    **{(over, event): over for over in OVER for event in (_E.REPLY, _E.REFUSAL, _E.GONE)},
    **{(phase, _E.CLOSE): _P.CLOSED for phase in Phase},
}


class WrongPhase(RuntimeError):
    """An event that the table does not list: a mistake in this package, never the server's or the caller's."""

    def __init__(self, phase: Phase, event: Event) -> None:
        super().__init__(f"{event.value!r} cannot happen in phase {phase.value!r}")
        self.phase, self.event = phase, event


def advance(phase: Phase, event: Event) -> Phase:
    """The phase after an event. Raises WrongPhase for one that the table does not list."""
    try:
        return MOVES[phase, event]
    except KeyError:
        raise WrongPhase(phase, event) from None
