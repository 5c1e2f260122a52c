"""What is too large is cut where it can be seen: valid JSON, largest first, everything else untouched."""

from __future__ import annotations

import copy
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openenv_gateway.mapping.cuts import cap_text, cut, encode

URI = "openenv://chess/latest"
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text() | st.text("ab", min_size=300, max_size=2000),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=5), inner, max_size=6),
    max_leaves=30,
)
RESULTS = st.fixed_dictionaries({"observation": st.dictionaries(st.text(), JSON_VALUES), "reward": st.just(0.5)})


def size(value: Any) -> int:
    return len(encode(value))


def marker(value: Any) -> dict[str, Any]:
    return {"$cut": {"bytes": size(value), "read": URI}}


def test_what_fits_is_the_same_object() -> None:
    value = {"observation": {"text": "short"}}
    assert cut(value, size(value), URI) is value


def test_the_largest_field_goes_first_and_the_others_stay() -> None:
    value = {"observation": {"log": "x" * 5000, "board": "y" * 900, "turn": 3}, "reward": 1.0, "done": False}
    kept = copy.deepcopy(value)
    assert cut(value, 2000, URI) == {
        "observation": {"log": marker("x" * 5000), "board": "y" * 900, "turn": 3},
        "reward": 1.0,
        "done": False,
    }
    assert value == kept


def test_as_many_fields_go_as_must() -> None:
    observation = {"a": "x" * 3000, "b": "y" * 2000, "c": "z" * 1000}
    cut_to = cut({"observation": observation}, 1500, URI)
    assert cut_to == {"observation": {"a": marker("x" * 3000), "b": marker("y" * 2000), "c": "z" * 1000}}


def test_a_field_inside_objects_and_a_list_is_cut_alone() -> None:
    message = {"role": "user", "text": "x" * 9000}
    value = {"observation": {"info": {"messages": [{"text": "first"}, message, "last"]}}}
    expected = {"observation": {"info": {"messages": [{"text": "first"}, {**message, "text": marker("x" * 9000)}, "last"]}}}
    assert cut(value, 1000, URI) == expected


@pytest.mark.parametrize("array", [list(range(3000)), [[1, 2, 3]] * 1000, ["some words"] * 1000, [{"a": 1}] * 1000])
def test_an_array_without_one_large_item_goes_as_a_whole(array: list[Any]) -> None:
    assert cut({"observation": {"array": array, "n": 1}}, 1000, URI) == {"observation": {"array": marker(array), "n": 1}}


def test_an_object_of_many_small_fields_goes_as_a_whole() -> None:
    table = {f"key {at}": at for at in range(1000)}
    value = {"observation": {"table": table, "text": "x" * 500, "turn": 3}, "done": False}
    assert cut(value, 2000, URI)["observation"] == {"table": marker(table), "text": "x" * 500, "turn": 3}


def test_an_observation_of_many_small_fields_is_cut_itself_where_that_is_allowed() -> None:
    observation = {f"key {at}": at for at in range(1000)}
    value = {"observation": observation, "late": {"tool": "step", "observation": {"text": "x" * 3000}}, "done": True}
    assert cut(value, 1000, URI, ("observation",)) == {
        "observation": marker(observation),
        "late": {"tool": "step", "observation": marker({"text": "x" * 3000})},
        "done": True,
    }


def test_texts_beside_the_objects_are_never_cut() -> None:
    value = {"observation": {"text": "x" * 300}, "notice": "n" * 3000, "next": "reset"}
    assert cut(value, 1000, URI)["notice"] == "n" * 3000


def test_without_a_place_to_read_the_whole_a_text_keeps_its_head() -> None:
    value = {"observation": {"text": "abcd" * 2000, "list": [0] * 2000}}
    assert cut(value, 2400) == {
        "observation": {"text": {"$cut": {"bytes": 8002, "head": "abcd" * 150}}, "list": {"$cut": {"bytes": 4001}}}
    }


def test_a_marker_that_would_be_larger_than_the_field_is_not_put() -> None:
    value = {"observation": {"a": "x" * 250, "b": "y" * 250}}
    assert cut(value, 300, "openenv://" + "u" * 400) == value


@given(RESULTS, st.integers(1000, 5000), st.sampled_from([URI, None]))
def test_the_result_fits_and_keeps_its_other_members(value: dict[str, Any], limit: int, uri: str | None) -> None:
    cut_to = cut(value, limit, uri, ("observation",))
    assert size(cut_to) <= limit
    assert orjson.loads(encode(cut_to)) == cut_to
    assert cut_to["reward"] == 0.5
    assert isinstance(cut_to["observation"], dict)
    assert ("$cut" in str(cut_to)) == (cut_to != value) or "$cut" in str(value)


def test_a_text_within_its_bound_is_the_same() -> None:
    assert cap_text("héllo", 6) == "héllo"


def test_a_long_text_says_what_is_missing_and_where_it_is() -> None:
    assert cap_text("a" * 100, 10) == "aaaaaaaaaa\n[cut: the first 10 of 100 bytes]"
    assert cap_text("a" * 100, 10, URI) == f"aaaaaaaaaa\n[cut: the first 10 of 100 bytes; the whole can be read at {URI}]"


def test_no_character_is_cut_in_two() -> None:
    assert cap_text("éé", 3) == "é\n[cut: the first 2 of 4 bytes]"
