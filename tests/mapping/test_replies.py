"""Frames as Python servers write them: whatever the bytes, a reply that can be encoded again, or BadReply."""

from __future__ import annotations

import json
import math
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from testkit import catalog

from openenv_client.errors import BadReply
from openenv_client.frames import ErrorFrame, Observation, State
from openenv_gateway.mapping.replies import MAX_DEPTH, check_depth, harden, number_name, parse_frame

ANY_TEXT = st.text(st.characters(exclude_categories=()))  # lone surrogates included
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(ANY_TEXT, inner, max_size=5),
    max_leaves=20,
)
ANY_OBJECT = st.dictionaries(ANY_TEXT, ANY_JSON, max_size=5)


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


def frame(observation: object, reward: str = "0.5") -> str:
    return f'{{"type": "observation", "data": {{"observation": {observation}, "reward": {reward}, "done": false}}}}'


def parsed(observation: object, reward: str = "0.5") -> Observation:
    reply = parse_frame(frame(observation, reward))
    assert isinstance(reply, Observation)
    return reply


@given(st.binary() | ANY_TEXT)
def test_arbitrary_input_is_a_reply_or_a_bad_reply(raw: bytes | str) -> None:
    try:
        reply = parse_frame(raw)
    except BadReply as error:
        assert str(error).startswith("The server's reply is not an OpenEnv frame")
    else:
        assert isinstance(reply, (Observation, State, ErrorFrame))


@given(ANY_OBJECT, st.none() | st.integers() | st.floats() | st.booleans(), ANY_OBJECT)
def test_whatever_python_writes_as_json_can_be_encoded_again(observation: Any, reward: float | None, metadata: Any) -> None:
    data = {"observation": observation, "reward": reward, "done": True, "metadata": metadata}
    reply = parse_frame(json.dumps({"type": "observation", "data": data}))
    assert isinstance(reply, Observation)
    orjson.dumps([reply.observation, reply.metadata, reply.reward])
    assert "NaN" not in json.dumps([reply.observation, reply.metadata]).replace('"NaN', "")


@given(ANY_JSON)
def test_a_state_is_hardened_like_an_observation(value: Any) -> None:
    reply = harden(State({"value": value}))
    assert isinstance(reply, State)
    orjson.dumps(reply.state)
    assert reply == parse_frame(orjson.dumps({"type": "state", "data": reply.state}))


@pytest.mark.parametrize("env", catalog.environments())
def test_recorded_frames_are_read_without_change(env: str) -> None:
    for recorded in catalog.replies(env):
        if recorded["type"] == "observation":
            reply = parse_frame(json.dumps(recorded).encode())
            assert isinstance(reply, Observation)
            assert reply.observation == recorded["data"]["observation"]
            assert reply.reward == recorded["data"]["reward"]


def test_numbers_without_a_json_form_become_their_names() -> None:
    reply = parsed('{"a": NaN, "b": [Infinity, {"c": -Infinity}], "d": 1e999, "e": 2.5}')
    assert reply.observation == {"a": "NaN", "b": ["Infinity", {"c": "-Infinity"}], "d": "Infinity", "e": 2.5}


def test_a_non_finite_reward_stays_a_number() -> None:
    assert math.isnan(parsed("{}", "NaN").reward or 0)
    assert parsed("{}", "-Infinity").reward == -math.inf
    assert parsed("{}", "9" * 400).reward == math.inf
    assert parsed("{}", "-" + "9" * 400).reward == -math.inf
    assert parsed('{"n": NaN}', "null").reward is None


def test_integers_beyond_64_bits_become_floats_on_both_ways() -> None:
    assert parsed(f'{{"n": {2**70}}}').observation == {"n": float(2**70)}
    assert parsed(f'{{"n": {2**70}, "also": NaN}}').observation == {"n": float(2**70), "also": "NaN"}
    assert parsed(f'{{"n": {10**400}, "m": -{10**400}}}').observation == {"n": "Infinity", "m": "-Infinity"}


def test_lone_surrogates_are_replaced_and_pairs_kept() -> None:
    assert parsed('{"a\\ud800": "b\\udc00", "c": "\\ud83d\\ude00"}').observation == {"a\ufffd": "b\ufffd", "c": "\U0001f600"}
    assert parsed('{"text": "\udc80"}').observation == {"text": "\ufffd"}


def test_an_error_frame_is_hardened_in_all_its_parts() -> None:
    reply = parse_frame('{"type": "error", "data": {"message": "\\ud800", "code": "\\ud800X", "at": NaN}}')
    assert reply == ErrorFrame("\ufffd", "\ufffdX", {"message": "\ufffd", "code": "\ufffdX", "at": "NaN"})


def test_a_frame_may_be_nested_to_the_bound_and_no_deeper() -> None:
    deepest = nested(MAX_DEPTH - 3)  # within the frame, its data and the observation
    assert parsed(f'{{"a": {json.dumps(deepest)}}}').observation == {"a": deepest}
    assert parsed(f'{{"a": {json.dumps(deepest)}, "b": NaN}}').observation == {"a": deepest, "b": "NaN"}
    for more in ("", ', "b": NaN'):
        with pytest.raises(BadReply, match=f"nested deeper than {MAX_DEPTH} levels"):
            parse_frame(frame(f'{{"a": {json.dumps([deepest])}{more}}}').encode())


@pytest.mark.parametrize("levels", [1000, 2000, 200_000])
def test_nesting_that_no_decoder_takes_is_a_bad_reply(levels: int) -> None:
    with pytest.raises(BadReply):
        parse_frame("[" * levels + "]" * levels)
    with pytest.raises(BadReply):
        parse_frame('{"type": ' + "[" * levels + "]" * levels + "}")


def test_bytes_that_are_no_utf8_are_a_bad_reply() -> None:
    with pytest.raises(BadReply, match="no UTF-8 text"):
        parse_frame(b'{"type": "state", "data": {"a": "\xff"}}')


def test_a_long_frame_is_as_deep_as_a_short_one() -> None:
    deepest, long = nested(MAX_DEPTH - 3), "x" * 20_000
    for flat in ("", [[1]] * 2 * MAX_DEPTH):
        assert parsed(json.dumps({"a": deepest, "b": [long, flat]})).observation["a"] == deepest
        for opening in ([deepest], {"a": deepest}):
            with pytest.raises(BadReply, match=f"nested deeper than {MAX_DEPTH} levels"):
                parse_frame(frame(json.dumps({"a": opening, "b": [long, flat]})))
    assert parsed(json.dumps({"b": long})).observation == {"b": long}


def test_harden_refuses_what_is_too_deep_in_any_part() -> None:
    deep: dict[str, Any] = {"a": nested(MAX_DEPTH)}
    observations = (Observation(deep, None, False, {}), Observation({}, None, False, deep))
    for reply in (*observations, State(deep), ErrorFrame("", "", deep)):
        with pytest.raises(BadReply):
            harden(reply)


def test_depth_counts_levels_of_arrays_and_objects() -> None:
    check_depth(1)
    check_depth(nested(MAX_DEPTH))
    with pytest.raises(BadReply):
        check_depth({"a": nested(MAX_DEPTH)})


def test_non_finite_numbers_have_names() -> None:
    assert [number_name(value) for value in (math.nan, math.inf, -math.inf)] == ["NaN", "Infinity", "-Infinity"]
