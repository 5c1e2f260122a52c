"""What the pool does next, decided in plain values."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from openenv_gateway.pool.decide import Evict, Launch, Lease, Limits, Retire, ServerView, Warm, decide


def server(key: int, leased: int = 0, capacity: int | None = 1, *, up: bool = True, rests_until: float = 0.0) -> ServerView:
    return ServerView(key, up, leased, capacity, rests_until)


def test_a_free_place_is_leased() -> None:
    assert decide([server(1)], 1, Limits(1, None), 0.0) == [Lease(1)]


def test_nobody_waiting_means_nothing_to_do() -> None:
    assert decide([server(1)], 0, Limits(4, None), 0.0) == []


def test_the_least_loaded_server_comes_first() -> None:
    assert decide([server(1, 2, 4), server(2, 0, 4)], 3, Limits(2, None), 0.0) == [Lease(2), Lease(2), Lease(1)]


def test_a_full_server_leases_nothing_and_the_lingering_must_go() -> None:
    assert decide([server(1, 1, 1)], 1, Limits(1, 1), 0.0) == [Evict()]


def test_a_resting_server_leases_nothing_until_its_time() -> None:
    resting = [server(1, 0, 1, rests_until=5.0)]
    assert decide(resting, 1, Limits(1, 1), 4.9) == [Evict()]
    assert decide(resting, 1, Limits(1, 1), 5.0) == [Lease(1)]


def test_a_server_of_unknown_capacity_may_be_tried_by_all() -> None:
    assert decide([server(1, 0, None)], 3, Limits(1, None), 0.0) == [Lease(1)] * 3


def test_32_first_calls_launch_what_they_need_and_no_more() -> None:
    assert decide([], 32, Limits(4, 8), 0.0) == [Launch()] * 4


def test_while_a_capacity_is_unknown_one_launch_is_enough() -> None:
    assert decide([], 32, Limits(4, None), 0.0) == [Launch()]


def test_servers_that_are_starting_count() -> None:
    starting = [server(1, 0, 8, up=False)]
    assert decide(starting, 8, Limits(4, 8), 0.0) == []
    assert decide(starting, 9, Limits(4, 8), 0.0) == [Launch()]


def test_beyond_max_servers_nothing_is_launched() -> None:
    assert decide([server(1, 1, 1), server(2, 1, 1)], 1, Limits(2, 1), 0.0) == [Evict()]


def warm(key: int, leased: int, capacity: int | None, warm: int, **more: float) -> ServerView:
    return ServerView(key, True, leased, capacity, warm=warm, **more)  # type: ignore[arg-type]


def test_a_warm_session_goes_first_also_on_a_fuller_server_and_needs_no_room() -> None:
    assert decide([server(1, 0, 8), warm(2, 8, 8, 1)], 1, Limits(2, 8), 0.0) == [Lease(2)]
    assert decide([server(1, 0, 8), warm(2, 8, 8, 1)], 2, Limits(2, 8), 0.0) == [Lease(2), Lease(1)]


def test_sessions_are_warmed_while_nobody_waits_one_at_a_time_and_where_there_is_room() -> None:
    limits = Limits(3, 4, warm_sessions=2)
    assert decide([server(1, 2, 4), server(2, 1, 4), server(3, 4, 4)], 0, limits, 0.0) == [Warm(2), Warm(1)]
    assert decide([server(1, 2, 4), server(2, 4, 4)], 3, limits, 0.0)[:1] == [Lease(1)]
    assert decide([warm(1, 2, 4, 1, warming=1)], 0, limits, 0.0) == []
    assert decide([warm(1, 2, 4, 0, warming=1)], 0, limits, 0.0) == []
    assert decide([warm(1, 0, 4, 0, warms_from=9.0)], 0, limits, 8.9) == []
    assert decide([warm(1, 0, 4, 0, warms_from=9.0)], 0, limits, 9.0) == [Warm(1)]


def test_warm_servers_are_launched_although_nobody_waits_within_the_limits() -> None:
    assert decide([], 0, Limits(4, None, warm_servers=2), 0.0) == [Launch(), Launch()]
    assert decide([server(1, up=False)], 0, Limits(4, None, warm_servers=2), 0.0) == [Launch()]
    assert decide([], 0, Limits(1, None, warm_servers=2), 0.0) == [Launch()]
    assert decide([], 0, Limits(4, None, launches_from=5.0, warm_servers=2), 4.0) == []


def test_sessions_that_are_kept_warm_need_a_server_although_nobody_waits() -> None:
    assert decide([], 0, Limits(4, None, warm_sessions=3), 0.0) == [Launch()]
    assert decide([], 0, Limits(4, None, launches_from=5.0, warm_sessions=3), 4.0) == []


def test_idle_servers_are_stopped_the_longest_idle_first_but_what_is_kept_warm() -> None:
    idle = [warm(1, 0, 1, 0, idle_since=7.0), warm(2, 0, 1, 0, idle_since=5.0), server(3, 1, 1)]
    assert decide(idle, 0, Limits(3, 1, idle_s=10.0), 16.9) == [Retire(2)]
    assert decide(idle, 0, Limits(3, 1, idle_s=10.0), 17.0) == [Retire(2), Retire(1)]
    assert decide(idle, 0, Limits(3, 1, idle_s=10.0, warm_servers=2), 17.0) == [Retire(2)]
    assert decide(idle[:1], 0, Limits(3, 1, idle_s=10.0, warm_sessions=1), 17.0) == [Warm(1)]
    assert decide(idle, 1, Limits(3, 1, idle_s=10.0), 17.0) == [Lease(1)]  # somebody waits: nothing is stopped


views = st.builds(
    ServerView,
    key=st.integers(),
    up=st.booleans(),
    leased=st.integers(0, 5),
    capacity=st.none() | st.integers(1, 5),
    rests_until=st.floats(0, 10),
    idle_since=st.just(math.inf) | st.floats(0, 5),
)
limits_of_all_kinds = st.builds(
    Limits,
    max_servers=st.integers(1, 6),
    expected_capacity=st.none() | st.integers(1, 8),
    warm_servers=st.integers(0, 6),
    warm_sessions=st.integers(0, 6),
    idle_s=st.floats(0, 10),
)


@given(st.lists(views, max_size=6, unique_by=lambda view: view.key), st.integers(0, 40), limits_of_all_kinds)
def test_no_decision_overfills_a_server_or_exceeds_the_limits(
    servers: list[ServerView], waiting: int, limits: Limits
) -> None:
    actions = decide(servers, waiting, limits, 5.0)
    leases = [action for action in actions if isinstance(action, Lease)]
    launches = [action for action in actions if isinstance(action, Launch)]
    assert len(leases) <= waiting
    assert not waiting or len(actions) - len(launches) <= waiting
    assert len(launches) + len(servers) <= max(limits.max_servers, len(servers))
    for view in servers:
        taken = [action for action in actions if isinstance(action, Lease | Warm) and action.server == view.key]
        if taken:
            assert view.up and view.rests_until <= 5.0
            assert view.capacity is None or view.leased + len(taken) <= view.capacity
        if Retire(view.key) in actions:
            assert view.up and 5.0 - view.idle_since >= limits.idle_s and not waiting
    kept = len(servers) - sum(isinstance(action, Retire) for action in actions)
    assert kept >= min(len(servers), limits.warm_servers)
