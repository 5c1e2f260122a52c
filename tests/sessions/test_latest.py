"""What is kept of results that were too large: how much, for how long, for whom."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testkit.gateways import environment_settings

from openenv_gateway.mapping.whole import TEXT, Part
from openenv_gateway.pool.pool import Pool
from openenv_gateway.sessions.lane import Lane
from openenv_gateway.sessions.latest import LatestResults

SETTINGS = environment_settings("http://127.0.0.1:9")


def lane(principal: str = "alice") -> Lane:
    return Lane("handle", principal, SETTINGS, Pool(SETTINGS))


def part(size: int) -> Part:
    return Part(TEXT, b"x" * size)


def test_a_result_is_kept_under_the_number_that_was_told() -> None:
    latest, mine = LatestResults(), lane()
    key, number = latest.place(mine)
    latest.keep(mine, [part(1), part(2)])
    shelf = latest.find(key, "alice")
    assert shelf is not None and shelf.results[number] == (part(1), part(2))
    assert latest.place(mine) == (key, number + 1)
    assert latest.find(key, "bob") is None
    assert latest.find("guess", "alice") is None


def test_a_reading_key_is_no_handle_and_long_enough() -> None:
    latest = LatestResults()
    keys = {latest.shelf(lane()).key for _ in range(100)}
    assert len(keys) == 100
    assert all(len(key) == 32 and key != "handle" for key in keys)  # 192 bits


def test_the_oldest_result_of_a_lane_goes_first() -> None:
    latest, mine = LatestResults(lane_bytes=10), lane()
    for _ in range(4):
        latest.place(mine)
        latest.keep(mine, [part(4)])
    assert latest.shelf(mine).numbers == (3, 4)


def test_the_oldest_result_of_all_lanes_goes_first() -> None:
    latest, mine, other = LatestResults(environment_bytes=10), lane(), lane()
    for each in (mine, other, mine):
        latest.place(each)
        latest.keep(each, [part(4)])
    assert (latest.shelf(mine).numbers, latest.shelf(other).numbers) == ((2,), (1,))


async def test_nothing_is_left_of_a_lane_that_ended_and_nothing_is_kept_for_it_any_more() -> None:
    latest, mine = LatestResults(), lane()
    key, _ = latest.place(mine)
    latest.keep(mine, [part(4)])
    latest.forget(mine)
    await mine.close()
    assert latest.find(key, "alice") is None
    ended, _ = latest.place(mine)
    latest.keep(mine, [part(4)])
    assert latest.find(ended, "alice") is None
    assert len(latest) == 0
    latest.forget(mine)


@given(st.lists(st.tuples(st.sampled_from("abcx"), st.integers(0, 60)), max_size=40))
def test_the_bounds_hold_whatever_is_kept(results: list[tuple[str, int]]) -> None:
    latest, lanes = LatestResults(lane_bytes=60, environment_bytes=100), {name: lane() for name in "abc"}
    for name, size in results:
        if name == "x":
            latest.forget(lanes["a"])
            continue
        latest.place(lanes[name])
        latest.keep(lanes[name], [part(size)])
        shelves = [latest.shelf(each) for each in lanes.values()]
        assert all(shelf.size <= 60 for shelf in shelves)
        assert sum(shelf.size for shelf in shelves) <= 100
        assert latest.shelf(lanes[name]).numbers[-1:] == (latest.shelf(lanes[name]).placed,), "the newest stays"


@pytest.mark.parametrize("size", [0, 10])
def test_a_result_as_large_as_the_room_is_kept(size: int) -> None:
    latest, mine = LatestResults(lane_bytes=10, environment_bytes=10), lane()
    latest.place(mine)
    latest.keep(mine, [part(size)])
    assert latest.shelf(mine).numbers == (1,)
