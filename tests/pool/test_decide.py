"""What the pool does next, decided in plain values."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from openenv_gateway.pool.decide import Evict, Launch, Lease, Limits, ServerView, decide


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


views = st.builds(
    ServerView,
    key=st.integers(),
    up=st.booleans(),
    leased=st.integers(0, 5),
    capacity=st.none() | st.integers(1, 5),
    rests_until=st.floats(0, 10),
)


@given(
    st.lists(views, max_size=6, unique_by=lambda view: view.key),
    st.integers(0, 40),
    st.integers(1, 6),
    st.none() | st.integers(1, 8),
)
def test_no_decision_overfills_a_server_or_exceeds_the_limits(
    servers: list[ServerView], waiting: int, max_servers: int, expected: int | None
) -> None:
    actions = decide(servers, waiting, Limits(max_servers, expected), 5.0)
    leases = [action for action in actions if isinstance(action, Lease)]
    launches = [action for action in actions if isinstance(action, Launch)]
    assert len(leases) <= waiting
    assert len(actions) - len(launches) <= waiting
    assert len(launches) + len(servers) <= max(max_servers, len(servers))
    for view in servers:
        given_here = sum(1 for lease in leases if lease.server == view.key)
        if given_here:
            assert view.up and view.rests_until <= 5.0
            assert view.capacity is None or view.leased + given_here <= view.capacity
