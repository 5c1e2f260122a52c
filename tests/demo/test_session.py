"""openenv_gateway.demo.session: frames in, frames out, in the shape of OpenEnv's own servers."""

from __future__ import annotations

import base64
import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import openenv_gateway_schemas as schemas
from openenv_client.frames import ErrorFrame, Observation, State, parse_reply
from openenv_gateway.demo.pages import ACTION, OBSERVATION, STATE
from openenv_gateway.demo.picture import board_png
from openenv_gateway.demo.session import Answer, Session


def ask(session: Session, kind: str, data: dict[str, Any] | None = None) -> Observation | State | ErrorFrame:
    answer = session.receive(json.dumps({"type": kind} if data is None else {"type": kind, "data": data}))
    assert answer.frame is not None and not answer.ends
    return parse_reply(answer.frame)


def observe(session: Session, kind: str, data: dict[str, Any]) -> Observation:
    reply = ask(session, kind, data)
    assert isinstance(reply, Observation)
    Draft202012Validator(OBSERVATION).validate(reply.observation)
    return reply


def fault(session: Session, raw: str | bytes, *, ends: bool = False) -> ErrorFrame:
    answer = session.receive(raw)
    assert answer.frame is not None and answer.ends is ends
    reply = parse_reply(answer.frame)
    assert isinstance(reply, ErrorFrame)
    return reply


def play_to_the_end(session: Session, seed: int) -> list[Observation]:
    """A game whose moves, like its opponent, depend on the seed alone."""
    moves = random.Random(seed)
    seen = [observe(session, "reset", {"seed": seed})]
    while not seen[-1].done:
        seen.append(observe(session, "step", {"cell": moves.choice(seen[-1].observation["legal_moves"])}))
    return seen


def test_reset_shows_an_empty_board() -> None:
    reply = observe(Session(), "reset", {"seed": 1})
    assert (reply.reward, reply.done) == (0.0, False)
    assert reply.observation["legal_moves"] == list(range(1, 10))
    assert base64.b64decode(reply.observation["picture"]) == board_png("." * 9)


@given(st.integers(0, 2**40))
def test_a_game_ends_with_its_reward_and_the_same_seed_gives_the_same_frames(seed: int) -> None:
    seen = play_to_the_end(Session(), seed)
    assert [reply.reward for reply in seen[:-1]] == [0.0] * (len(seen) - 1)
    last = seen[-1]
    assert last.reward == {"won": 1.0, "drawn": 0.5, "lost": -1.0}[last.metadata["result"]]
    assert play_to_the_end(Session(), seed) == seen


def test_all_three_rewards_occur_within_a_few_seeds() -> None:
    assert {play_to_the_end(Session(), seed)[-1].reward for seed in range(60)} == {1.0, 0.5, -1.0}


def test_the_state_names_episode_step_and_board() -> None:
    session = Session()
    observe(session, "reset", {"seed": 3, "episode_id": "ep-1", "unknown": 1})
    observe(session, "step", {"cell": 1})
    state = ask(session, "state")
    assert isinstance(state, State)
    Draft202012Validator(STATE).validate(state.state)
    board = state.state.pop("board")
    assert state.state == {"episode_id": "ep-1", "step_count": 1, "seed": 3, "result": "playing"}
    assert board[0] == "X" and board.count("O") == 1


def test_the_state_before_reset_is_an_empty_board_without_an_episode() -> None:
    expected = {"episode_id": None, "step_count": 0, "board": ".........", "seed": None, "result": "playing"}
    assert ask(Session(), "state") == State(expected)


def test_two_resets_without_a_seed_make_two_episodes() -> None:
    session, seen = Session(), []
    for _ in range(2):
        observe(session, "reset", {})
        state = ask(session, "state")
        assert isinstance(state, State)
        seen.append((state.state["episode_id"], state.state["seed"]))
    assert seen[0][0] != seen[1][0] and seen[0][1] != seen[1][1]


def test_a_step_before_reset_is_refused_and_says_what_to_do() -> None:
    reply = fault(Session(), '{"type": "step", "data": {"cell": 1}}')
    assert (reply.code, reply.message) == ("EXECUTION_ERROR", "No game is running: send reset first.")


def test_a_taken_cell_changes_nothing_and_the_game_goes_on() -> None:
    session = Session()
    observe(session, "reset", {"seed": 1})
    first = observe(session, "step", {"cell": 5})
    before = ask(session, "state")
    reply = fault(session, '{"type": "step", "data": {"cell": 5}}')
    assert reply.code == "EXECUTION_ERROR"
    assert reply.message.startswith("Cell 5 is taken by X; the board is unchanged. Free cells: ")
    assert ask(session, "state") == before
    assert observe(session, "step", {"cell": first.observation["legal_moves"][0]}).observation != first.observation


def test_a_step_after_the_end_shows_the_end_again_without_reward() -> None:
    session = Session()
    last = play_to_the_end(session, 0)[-1]
    again = observe(session, "step", {"cell": 1})
    assert (again.observation, again.done, again.reward) == (last.observation, True, 0.0)


@pytest.mark.parametrize(
    ("raw", "place", "kind"),
    [
        ('{"type": "step", "data": {}}', ["cell"], "missing"),
        ('{"type": "step"}', ["data"], "missing"),
        ('{"type": "step", "data": {"cell": 1, "zzz": 1}}', ["zzz"], "extra_forbidden"),
        ('{"type": "step", "data": {"cell": {"a": [1]}}}', ["cell"], "int_type"),
        ('{"type": "step", "data": {"cell": true}}', ["cell"], "int_type"),
        ('{"type": "step", "data": {"cell": 1.5}}', ["cell"], "int_type"),
        ('{"type": "step", "data": {"cell": 10}}', ["cell"], "out_of_range"),
        ('{"type": "step", "data": [1]}', ["data"], "dict_type"),
        ('{"type": "state", "id": 7}', ["id"], "extra_forbidden"),
        ('{"type": "state", "data": {}}', ["data"], "extra_forbidden"),
        ('{"type": "reset", "data": {"seed": "x"}}', ["data", "seed"], "int_type"),
        ('{"type": "reset", "data": {"seed": -1}}', ["data", "seed"], "int_type"),
        ('{"type": "reset", "data": {"episode_id": 1}}', ["data", "episode_id"], "string_type"),
    ],
)
def test_a_frame_that_does_not_fit_is_a_validation_error_that_names_the_place(raw: str, place: list[str], kind: str) -> None:
    reply = fault(Session(), raw)
    assert (reply.code, reply.message) == ("VALIDATION_ERROR", "Invalid message")
    [error] = reply.data["errors"]
    assert (error["loc"], error["type"]) == (place, kind)


@pytest.mark.parametrize("kind", ["bogus", "", 7, None, ["reset"]])
def test_an_unknown_type_is_named(kind: object) -> None:
    reply = fault(Session(), json.dumps({"type": kind}))
    assert (reply.code, reply.message) == ("UNKNOWN_TYPE", f"Unknown message type: {kind}")


@pytest.mark.parametrize("raw", ["{nope", "", '{"type": "step", "data": {"cell": NaN}}', "[" * 100_000])
def test_what_is_no_json_is_answered_and_the_session_goes_on(raw: str) -> None:
    assert fault(Session(), raw).code == "INVALID_JSON"


@pytest.mark.parametrize("raw", ["[]", '"x"', "null", b'{"type": "state"}'])
def test_what_is_no_object_in_a_text_frame_ends_the_session(raw: str | bytes) -> None:
    assert fault(Session(), raw, ends=True).code == "SESSION_ERROR"


def test_close_is_not_answered() -> None:
    assert Session().receive('{"type": "close"}') == Answer(ends=True)


def test_mcp_over_the_socket_is_refused_as_by_a_plain_environment() -> None:
    answer = Session().receive('{"type": "mcp", "data": {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}}')
    error = {"code": -32603, "message": "Environment does not support MCP", "data": None}
    assert json.loads(answer.frame or "") == {"type": "mcp", "data": {"jsonrpc": "2.0", "id": 1, "error": error}}


WS_FRAME = schemas.load("ws_frame")
REPLY = Draft202012Validator({"$ref": "#/$defs/reply", "$defs": WS_FRAME["$defs"]})
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
FRAMES = st.fixed_dictionaries(
    {"type": st.sampled_from(["reset", "step", "state", "mcp", "x"])},
    optional={"data": JSON | st.fixed_dictionaries({}, optional={"cell": JSON, "seed": JSON, "episode_id": JSON})},
)


@given(st.lists(FRAMES.map(json.dumps) | st.text() | st.binary(), max_size=6))
def test_whatever_comes_gets_one_reply_that_is_a_frame(messages: list[str | bytes]) -> None:
    session = Session()
    for message in messages:
        answer = session.receive(message)
        assert answer.frame is not None
        REPLY.validate(json.loads(answer.frame))


@given(JSON | st.fixed_dictionaries({"cell": st.integers(-2, 12) | st.floats() | st.text()}))
def test_the_published_action_schema_and_the_session_refuse_the_same_actions(action: Any) -> None:
    session = Session()
    session.receive('{"type": "reset"}')
    valid = Draft202012Validator(ACTION).is_valid(action)
    try:
        raw = json.dumps({"type": "step", "data": action}, allow_nan=False)
    except ValueError:
        return  # NaN and infinity are no JSON: they cannot be sent
    assert (json.loads(session.receive(raw).frame or "")["type"] == "observation") is valid
