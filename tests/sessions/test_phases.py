"""The life of a lane."""

from __future__ import annotations

import pytest

from openenv_gateway.sessions.phases import MOVES, Event, Phase, WrongPhase, advance


def test_a_normal_life() -> None:
    phase = Phase.NEW
    seen = []
    for event in (Event.OPEN, Event.PLAYING, Event.PLAYING, Event.ENDED, Event.PLAYING, Event.BROKE, Event.OPEN, Event.ENDED):
        phase = advance(phase, event)
        seen.append(phase)
    assert seen == [
        Phase.OPENING,
        Phase.IN_EPISODE,
        Phase.IN_EPISODE,
        Phase.DONE,
        Phase.IN_EPISODE,
        Phase.LOST,
        Phase.REOPENING,
        Phase.DONE,
    ]


def test_an_event_that_the_table_does_not_list_is_an_error() -> None:
    unlisted = [(phase, event) for phase in Phase for event in Event if (phase, event) not in MOVES]
    assert (Phase.NEW, Event.PLAYING) in unlisted
    for phase, event in unlisted:
        with pytest.raises(WrongPhase, match=f"{phase}.*{event}"):
            advance(phase, event)


def test_a_failed_reopening_stays_lost_so_that_no_step_opens_a_fresh_episode_in_silence() -> None:
    assert advance(advance(Phase.LOST, Event.OPEN), Event.FAILED) is Phase.LOST


def test_every_phase_can_be_closed() -> None:
    assert {advance(phase, Event.CLOSE) for phase in Phase} == {Phase.CLOSED}
