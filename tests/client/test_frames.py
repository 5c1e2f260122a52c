"""frames.py: what is sent, and that only an OpenEnv reply frame is ever taken for one."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testkit import catalog

from openenv_client.errors import BadReply, CapacityReached, EnvironmentFault, FactoryFailed, SessionRefused
from openenv_client.frames import (
    CLOSE,
    REFUSALS,
    ErrorFrame,
    JsonObject,
    Kind,
    Observation,
    Reply,
    State,
    answer_data,
    parse_observation,
    parse_reply,
    request_frame,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
OBJECT = st.dictionaries(st.text(), JSON, max_size=4)
REWARD = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)


def frame(kind: object, data: object) -> str:
    return json.dumps({"type": kind, "data": data})


# What is sent


def test_a_state_request_carries_no_data() -> None:
    assert json.loads(request_frame("state", {"ignored": 1})) == {"type": "state"}


def test_a_reset_without_arguments_carries_an_empty_object() -> None:
    assert json.loads(request_frame("reset")) == {"type": "reset", "data": {}}


@given(kind=st.sampled_from(["reset", "step"]), data=OBJECT)
def test_a_request_has_exactly_type_and_data(kind: Kind, data: JsonObject) -> None:
    assert json.loads(request_frame(kind, data)) == {"type": kind, "data": data}


def test_the_close_frame_is_the_protocols() -> None:
    assert json.loads(CLOSE) == {"type": "close"}


# What is accepted


@given(observation=OBJECT, reward=REWARD, done=st.booleans(), metadata=st.none() | OBJECT)
def test_an_observation_keeps_reward_done_and_metadata_as_sent(
    observation: JsonObject, reward: float | None, done: bool, metadata: JsonObject | None
) -> None:
    data = {"observation": observation, "reward": reward, "done": done, "metadata": metadata}
    expected = Observation(observation, reward, done, metadata or {})
    parsed = parse_reply(frame("observation", data).encode())
    assert parsed == expected
    assert isinstance(parsed, Observation)
    assert type(parsed.reward) is type(reward)


def test_reward_done_and_metadata_may_be_missing() -> None:
    assert parse_observation({"observation": {"n": 1}}) == Observation({"n": 1}, None, False, {})


@given(state=OBJECT)
def test_a_state_is_the_whole_data_object(state: JsonObject) -> None:
    assert parse_reply(frame("state", state)) == State(state)


@given(message=st.text(), code=st.text(), more=OBJECT)
def test_an_error_keeps_whatever_the_server_adds(message: str, code: str, more: JsonObject) -> None:
    data = {**more, "message": message, "code": code}
    assert parse_reply(frame("error", data)) == ErrorFrame(message, code, data)


def test_an_error_without_a_code_is_unknown() -> None:
    assert parse_reply(frame("error", {"message": "no"})) == ErrorFrame("no", "UNKNOWN", {"message": "no"})


def test_a_decoder_of_the_callers_choice_is_used() -> None:
    seen: list[object] = []

    def loads(raw: str | bytes) -> Any:
        seen.append(raw)
        return json.loads(raw)

    assert parse_reply(b'{"type": "state", "data": {}}', loads) == State({})
    assert seen == [b'{"type": "state", "data": {}}']


# What is refused


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        ("{nope", "the frame"),
        (b"\xff\xfe{", "the frame"),
        ("[" * 100_000, "the frame"),
        ("[]", "the frame"),
        ("null", "the frame"),
        (frame("mcp", {}), "type"),
        (frame(None, {}), "type"),
        ('{"data": {}}', "type"),
        (frame("observation", None), "data"),
        ('{"type": "state"}', "data"),
        (frame("observation", {}), "observation"),
        (frame("observation", {"observation": [1]}), "observation"),
        (frame("observation", {"observation": {}, "reward": "0.5"}), "reward"),
        (frame("observation", {"observation": {}, "done": 1}), "done"),
        (frame("observation", {"observation": {}, "done": None}), "done"),
        (frame("observation", {"observation": {}, "metadata": []}), "metadata"),
        (frame("error", {"code": "X"}), "error message"),
        (frame("error", {"message": 99, "code": "X"}), "error message"),
    ],
)
def test_what_is_no_reply_frame_is_refused_and_the_fault_named(raw: str | bytes, field: str) -> None:
    with pytest.raises(BadReply) as caught:
        parse_reply(raw)
    assert caught.value.field == field
    assert field in str(caught.value)


@given(value=JSON)
def test_any_json_is_a_reply_or_a_bad_reply(value: object) -> None:
    try:
        reply = parse_reply(json.dumps(value))
    except BadReply as error:
        assert error.field and error.found
    else:
        assert isinstance(value, dict)
        assert isinstance(reply, (Observation, State, ErrorFrame))


@given(raw=st.binary(max_size=64))
def test_any_bytes_are_a_reply_or_a_bad_reply(raw: bytes) -> None:
    try:
        reply: Reply | None = parse_reply(raw)
    except BadReply:
        reply = None
    assert reply is None or isinstance(json.loads(raw), dict)


# What an error frame means


def test_a_capacity_refusal_tells_how_many_sessions_there_are() -> None:
    refusal = ErrorFrame("full", "CAPACITY_REACHED", {"active_sessions": 1, "max_sessions": 1}).as_refusal()
    assert isinstance(refusal, CapacityReached)
    assert (refusal.active_sessions, refusal.max_sessions, refusal.retryable) == (1, 1, True)
    assert str(refusal) == "Server error: full (code: CAPACITY_REACHED)"


def test_capacity_numbers_that_are_no_counts_are_unknown() -> None:
    refusal = ErrorFrame("full", "CAPACITY_REACHED", {"active_sessions": True, "max_sessions": "8"}).as_refusal()
    assert isinstance(refusal, CapacityReached)
    assert (refusal.active_sessions, refusal.max_sessions) == (None, None)


def test_a_broken_factory_and_any_other_refusal_are_told_apart() -> None:
    assert isinstance(ErrorFrame("no ROM", "FACTORY_ERROR", {}).as_refusal(), FactoryFailed)
    other = ErrorFrame("Unknown session_id: x", "SESSION_ERROR", {}).as_refusal()
    assert type(other) is SessionRefused
    assert (other.code, other.message) == ("SESSION_ERROR", "Unknown session_id: x")


@pytest.mark.parametrize(
    ("errors", "expected"), [([{"msg": "Field required"}], ({"msg": "Field required"},)), ("many", ()), (None, ())]
)
def test_a_fault_carries_the_field_errors_if_there_are_any(errors: object, expected: tuple[JsonObject, ...]) -> None:
    fault = ErrorFrame("Invalid message", "VALIDATION_ERROR", {"errors": errors}).as_exception()
    assert isinstance(fault, EnvironmentFault)
    assert fault.errors == expected
    assert str(fault) == "Server error: Invalid message (code: VALIDATION_ERROR)"


# What real servers send


@pytest.mark.parametrize("env", catalog.environments())
def test_every_recorded_reply_is_read_as_the_frame_that_it_is(env: str) -> None:
    kinds = {"observation": Observation, "state": State, "error": ErrorFrame}
    for exchange in catalog.exchanges(env):
        raw = json.dumps(exchange.recv)
        if exchange.recv["type"] == "mcp":  # only ever asked for over `/ws` by recorders: no request of ours
            with pytest.raises(BadReply):
                parse_reply(raw)
            continue
        assert type(parse_reply(raw)) is kinds[exchange.recv["type"]], exchange.label


@pytest.mark.parametrize("env", catalog.environments())
def test_every_recorded_request_is_the_frame_that_we_would_send(env: str) -> None:
    for exchange in catalog.exchanges(env):
        kind, data = exchange.send.get("type"), exchange.send.get("data")
        malformed = set(exchange.send) - {"type", "data"} or (data is None and kind != "state")
        if kind in ("reset", "step", "state") and not malformed:
            assert json.loads(request_frame(cast(Kind, kind), data)) == exchange.send, exchange.label


def test_the_recorded_refusals_are_refusals() -> None:
    frames = [
        event["recv"]
        for env in catalog.environments()
        if catalog.exchanges(env)
        for entry in catalog.load(env, "ws_transcript")
        for event in entry.get("events", [])
        if event["label"].endswith("unsolicited frame on connect")
    ]
    assert len(frames) >= 8
    for recorded in frames:
        reply = parse_reply(json.dumps(recorded))
        assert isinstance(reply, ErrorFrame) and reply.code in REFUSALS
        assert isinstance(reply.as_refusal(), CapacityReached)


# What users' hooks read


@given(state=OBJECT)
def test_the_answer_to_state_is_its_data_as_it_came(state: JsonObject) -> None:
    assert answer_data(frame("state", state), "state") == state


@pytest.mark.parametrize("kind", ["reset", "step"])
def test_the_answer_to_a_step_is_its_data_with_whatever_the_server_adds(kind: Kind) -> None:
    data = {"observation": {"n": 1}, "reward": None, "done": False, "more": [1]}
    assert answer_data(frame("observation", data), kind) == data


def test_an_error_answer_is_raised_with_its_field_errors() -> None:
    data = {"message": "bad", "code": "VALIDATION_ERROR", "errors": [{"loc": ["n"]}]}
    with pytest.raises(EnvironmentFault, match=r"^Server error: bad \(code: VALIDATION_ERROR\)$") as fault:
        answer_data(frame("error", data), "step")
    assert fault.value.errors == ({"loc": ["n"]},)


@pytest.mark.parametrize(
    ("kind", "reply"),
    [("state", frame("observation", {"observation": {}})), ("step", frame("state", {})), ("reset", frame("close", {}))],
)
def test_an_answer_of_another_kind_is_none(kind: Kind, reply: str) -> None:
    with pytest.raises(BadReply, match="type is"):
        answer_data(reply, kind)


def test_an_observation_that_is_none_is_refused_before_a_hook_sees_it() -> None:
    with pytest.raises(BadReply, match="reward"):
        answer_data(frame("observation", {"observation": {}, "reward": "much"}), "step")
