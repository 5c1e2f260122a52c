"""When a server that gives no sign of life is given up, in plain values."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from openenv_gateway.pool.health import PROBES, Verdict, judge

TIMES = st.floats(0, 1000)


def test_a_server_that_answered_just_now_is_well() -> None:
    assert judge(100.0, 99.5, 0.0, 10.0) is Verdict.WELL


def test_silence_is_waited_out_and_then_ends_it() -> None:
    assert judge(105.0, 100.0, 0.0, 10.0) is Verdict.WAIT
    assert judge(109.9, 100.0, 0.0, 10.0) is Verdict.WAIT
    assert judge(110.0, 100.0, 0.0, 10.0) is Verdict.GIVE_UP


def test_silence_counts_only_from_the_end_of_what_was_under_way() -> None:
    assert judge(150.0, 100.0, 150.0, 10.0) is Verdict.WAIT
    assert judge(159.9, 100.0, 150.0, 10.0) is Verdict.WAIT
    assert judge(160.0, 100.0, 150.0, 10.0) is Verdict.GIVE_UP


@given(TIMES, TIMES, TIMES, st.floats(0.1, 100))
def test_nobody_is_given_up_early(now: float, seen: float, busy: float, silence_s: float) -> None:
    verdict = judge(now, seen, busy, silence_s)
    assert (verdict is Verdict.GIVE_UP) == (now - seen >= silence_s and now - busy >= silence_s)
    assert (verdict is Verdict.WELL) == (now - seen < silence_s / PROBES)
