"""Pauses between launches that fail."""

from __future__ import annotations

import random

from openenv_gateway.pool.backoff import FIRST_S, LONGEST_S, Backoff
from openenv_gateway.pool.decide import Launch, Limits, decide


def test_pauses_double_up_to_the_longest_with_at_most_a_quarter_of_jitter() -> None:
    backoff = Backoff(99, random.Random(1))
    pauses = [backoff.failed(100.0) for _ in range(10)]
    for number, pause in enumerate(pauses):
        least = min(LONGEST_S, FIRST_S * 2**number)
        assert least <= pause <= least * 1.25
    assert backoff.launches_from == 100.0 + pauses[-1]


def test_a_server_that_works_ends_the_row() -> None:
    backoff = Backoff(99, random.Random(1))
    for _ in range(5):
        backoff.failed(0.0)
    backoff.succeeded()
    assert backoff.launches_from == 0.0
    assert backoff.failed(0.0) <= FIRST_S * 1.25


def test_until_then_nothing_is_launched() -> None:
    assert decide([], 1, Limits(1, None, launches_from=5.0), 4.9) != [Launch()]
    assert decide([], 1, Limits(1, None, launches_from=5.0), 5.0) == [Launch()]
