"""lifecycle.py: the table says everything, and an event that it does not list is an error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openenv_client.lifecycle import MOVES, OVER, OWING, WAITING, Event, Phase, WrongPhase, advance

EVENTS = st.lists(st.sampled_from(Event), max_size=30)


def walk(events: list[Event], start: Phase = Phase.FRESH) -> list[tuple[Phase, Event, Phase]]:
    """Every move that the table allows, in order; events that it does not list are left out."""
    moves, phase = [], start
    for event in events:
        if (phase, event) in MOVES:
            moves.append((phase, event, advance(phase, event)))
            phase = moves[-1][2]
    return moves


@given(EVENTS)
def test_replies_are_taken_one_for_each_request_in_order(events: list[Event]) -> None:
    sent = taken = 0
    for _, event, after in walk(events):
        sent += event is Event.SEND
        taken += event is Event.TAKE
        assert taken <= sent
        if after not in OVER:
            assert sent - taken == (1 if after in OWING else 0)


@given(EVENTS)
def test_there_is_no_way_back_from_the_end(events: list[Event]) -> None:
    over = [after for _, _, after in walk(events) if after in OVER]
    assert set(over) <= ({over[0], Phase.CLOSED} if over else set())


@pytest.mark.parametrize("phase", [phase for phase in Phase if phase in OWING or phase in OVER])
def test_nothing_is_sent_while_a_reply_is_owed_or_after_the_end(phase: Phase) -> None:
    with pytest.raises(WrongPhase, match="'a request is sent' cannot happen in phase"):
        advance(phase, Event.SEND)


@pytest.mark.parametrize("phase", [phase for phase in Phase if phase not in WAITING and phase is not Phase.LAST])
def test_a_frame_that_is_not_due_never_becomes_a_reply(phase: Phase) -> None:
    assert advance(phase, Event.REPLY) in OVER


def test_only_a_first_frame_can_refuse_a_session() -> None:
    refusable = {phase for phase in Phase if MOVES.get((phase, Event.REFUSAL)) is Phase.REFUSED}
    assert refusable == {Phase.FRESH, Phase.OPENING, Phase.REFUSED}


def test_a_reply_that_is_here_survives_the_end_of_the_connection() -> None:
    last = advance(Phase.ARRIVED, Event.GONE)
    assert last in OWING
    assert advance(last, Event.TAKE) is Phase.LOST


def test_every_phase_can_be_closed() -> None:
    assert {advance(phase, Event.CLOSE) for phase in Phase} == {Phase.CLOSED}
