"""The life of a lane: one enum, one table. An event that the table does not list is an error in the gateway."""

from __future__ import annotations

from enum import StrEnum


class Phase(StrEnum):
    __hash__ = str.__hash__  # members are looked up in tables at every call, and the one of Enum is written in Python

    NEW = "new"
    OPENING = "opening"
    REOPENING = "reopening"
    IN_EPISODE = "in episode"
    DONE = "done"
    LOST = "lost"
    CLOSED = "closed"


class Event(StrEnum):
    __hash__ = str.__hash__

    OPEN = "open"
    PLAYING = "playing"
    ENDED = "ended"
    FAILED = "failed"
    BROKE = "broke"
    TOLD = "told"
    CLOSE = "close"


MOVES: dict[tuple[Phase, Event], Phase] = {
    (Phase.NEW, Event.OPEN): Phase.OPENING,
    (Phase.OPENING, Event.PLAYING): Phase.IN_EPISODE,
    (Phase.OPENING, Event.ENDED): Phase.DONE,
    (Phase.OPENING, Event.FAILED): Phase.NEW,
    (Phase.IN_EPISODE, Event.PLAYING): Phase.IN_EPISODE,
    (Phase.IN_EPISODE, Event.ENDED): Phase.DONE,
    (Phase.IN_EPISODE, Event.BROKE): Phase.LOST,
    (Phase.DONE, Event.PLAYING): Phase.IN_EPISODE,
    (Phase.DONE, Event.ENDED): Phase.DONE,
    (Phase.DONE, Event.BROKE): Phase.LOST,
    (Phase.LOST, Event.OPEN): Phase.REOPENING,
    (Phase.LOST, Event.TOLD): Phase.NEW,
    (Phase.REOPENING, Event.PLAYING): Phase.IN_EPISODE,
    (Phase.REOPENING, Event.ENDED): Phase.DONE,
    (Phase.REOPENING, Event.FAILED): Phase.LOST,
    **{(phase, Event.CLOSE): Phase.CLOSED for phase in Phase},
}


class WrongPhase(RuntimeError):
    """An event that cannot happen in a phase."""

    def __init__(self, phase: Phase, event: Event) -> None:
        super().__init__(f"A lane that is {phase} cannot take the event {event}")


def advance(phase: Phase, event: Event) -> Phase:
    """The phase after `event`. Raises WrongPhase for a move that the table does not list."""
    try:
        return MOVES[phase, event]
    except KeyError:
        raise WrongPhase(phase, event) from None
