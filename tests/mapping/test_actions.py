"""From arguments, as hosts send them, to the one request that the environment gets, or an error that teaches."""

from __future__ import annotations

import json
import time
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from testkit import catalog
from testkit.json_schemas import TREE, VALUES, action_schemas
from testkit.toolsets import calls, made_of, recorded

from openenv_client.frames import JsonObject
from openenv_gateway.errors import InvalidArguments
from openenv_gateway.mapping.actions import Request, to_request
from openenv_gateway.mapping.options import MappingOptions
from openenv_gateway.mapping.toolset import Tool


def step(action: JsonObject) -> Tool:
    return made_of(action).find("step")


def refusal(tool: Tool, arguments: Any) -> str:
    with pytest.raises(InvalidArguments) as caught:
        to_request(tool, arguments)
    return str(caught.value)


@pytest.mark.parametrize("env", catalog.described())
def test_every_recorded_action_that_the_server_took_passes_unchanged_and_every_other_is_refused(env: str) -> None:
    tools = recorded(env)
    for action, name, arguments, taken in calls(env):
        if name not in [tool.name for tool in tools.tools]:
            continue  # a recorded call of a tool that the environment does not have
        if taken and not (name == "echo_message" and arguments != {"message": "hi"}):
            assert to_request(tools.find(name), arguments) == Request("step", action)
        elif not taken:
            assert f"the tool {name}" in refusal(tools.find(name), arguments)


def test_an_action_of_an_mcp_environment_that_its_tool_would_refuse_is_refused_before_it_is_sent() -> None:
    assert "the required message" in refusal(recorded("echo_env").find("echo_message"), {})
    assert "at message expected a string, got 5 (integer)" in refusal(recorded("echo_env").find("echo_message"), {"message": 5})


def test_a_call_of_an_environments_own_tool_becomes_a_step_under_its_own_name() -> None:
    tool = recorded("echo_env").find("echo_message")
    action = {"type": "call_tool", "tool_name": "echo_message", "arguments": {"message": "hi"}}
    assert to_request(tool, {"message": "hi"}) == Request("step", action)


def test_state_and_observe_take_no_arguments() -> None:
    assert to_request(recorded("chess_env").find("state"), None) == Request("state", {})
    observe = recorded("chess_env", MappingOptions(exposure="agent")).find("observe")
    assert to_request(observe, {}) == Request("observe", {})
    assert "only known properties: none at all" in refusal(observe, {"a": 1})


def test_reset_takes_seed_and_episode_id_and_anything_else_plainly_or_in_options_json() -> None:
    reset = recorded("chess_env").find("reset")
    assert to_request(reset, None) == Request("reset", {})
    assert to_request(reset, {"seed": "7", "episode_id": None, "render": True}) == Request(
        "reset", {"seed": 7, "episode_id": None, "render": True}
    )
    assert to_request(reset, {"seed": 1, "options_json": '{"size": 3, "seed": 2}'}).data == {"seed": 1, "size": 3}
    assert to_request(reset, {"options_json": {"size": 3}}).data == {"size": 3}
    for nothing in (None, "", "  ", "{}"):
        assert to_request(reset, {"options_json": nothing}).data == {}


def test_the_servers_own_reset_schema_decides_where_it_publishes_one() -> None:
    schema = {"type": "object", "properties": {"level": {"type": "integer"}}, "additionalProperties": False}
    reset = made_of({"type": "object", "properties": {}}, reset=schema).find("reset")
    assert to_request(reset, {"level": "2"}) == Request("reset", {"level": 2})
    assert "only known properties: level" in refusal(reset, {"level": 1, "seed": 1})


def test_an_error_says_where_what_was_expected_what_came_and_what_would_pass() -> None:
    assert refusal(recorded("grid_world_env").find("step"), {"action": "JUMP"}) == (
        'The arguments do not fit the tool step: at action expected one of "UP", "DOWN", "LEFT", "RIGHT", got "JUMP" (string). '
        'Arguments that would pass: {"action": "UP"}'
    )


def test_an_error_about_an_unknown_argument_names_those_that_are_advertised() -> None:
    message = refusal(recorded("connect4_env").find("step"), {"column": 1, "row": 2, "why": 3})
    assert 'expected only known properties: column, got ["row", "why"] (array)' in message


def test_an_error_shows_at_most_the_beginning_of_what_came() -> None:
    message = refusal(recorded("connect4_env").find("step"), {"column": "x" * 100_000})
    assert len(message) < 1000
    assert "100002 characters" in message


def test_an_error_about_an_optional_argument_shows_an_example_with_it() -> None:
    message = refusal(recorded("tbench2_env").find("step"), {"block": "maybe"})
    assert message.endswith('Arguments that would pass: {"block": true}')


def test_an_example_that_would_be_very_long_or_that_nobody_can_make_is_left_out() -> None:
    long = {"type": "array", "items": {"type": "string", "minLength": 90}, "minItems": 20}
    for schema in (long, {"type": "string", "pattern": "^very special$"}, {"type": "string", "minLength": 10_000}):
        tool = step({"type": "object", "properties": {"x": schema}, "required": ["x"]})
        assert "would pass" not in refusal(tool, {})


def test_any_mapping_is_an_object() -> None:
    seen = MappingProxyType({"message": "hi"})
    tool = recorded("echo_env").find("echo_message")
    assert to_request(tool, seen) == to_request(tool, {"message": "hi"})


def test_arguments_that_are_no_object_are_refused() -> None:
    assert "expected a JSON object with the arguments, got [1] (array)" in refusal(recorded("chess_env").find("step"), [1])


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(action_schemas(), st.dictionaries(st.text(max_size=3), VALUES, max_size=3))
def test_the_example_in_an_error_passes(action: JsonObject, arguments: JsonObject) -> None:
    tool = step(action)
    try:
        to_request(tool, arguments)
    except InvalidArguments as error:
        _, marked, example = str(error).partition("Arguments that would pass: ")
        if marked:
            to_request(tool, json.loads(example))


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(action_schemas())
def test_there_is_nearly_always_an_example(action: JsonObject) -> None:
    """Not only where one is impossible: none of these schemas asks for what cannot be made up."""
    example = step(action).contract.example()
    assert example is not None
    to_request(step(action), example)


def test_arguments_too_deep_or_too_branching_to_check_are_refused_in_bounded_time() -> None:
    branch = {"type": "array", "items": {"$ref": "#/$defs/T"}, "maxItems": 1}
    hostile: JsonObject = {"T": {"anyOf": [{**branch, "minItems": 1}, {**branch, "title": "b"}, {"const": 0}]}}
    value: Any = "x"
    for _ in range(100):
        value = [value]
    tool = step({"type": "object", "properties": {"x": {"$ref": "#/$defs/T"}}, "required": ["x"], "$defs": hostile})
    started = time.process_time()
    assert "smaller or less deeply nested" in refusal(tool, {"x": value})
    assert time.process_time() - started < 30


def test_arguments_nested_deeper_than_the_stack_are_refused() -> None:
    value: Any = {"value": 1}
    for _ in range(3000):
        value = {"value": 1, "children": [value]}
    tool = step({"type": "object", "properties": {"x": {"$ref": "#/$defs/Tree"}}, "$defs": {"Tree": TREE}})
    assert "smaller or less deeply nested" in refusal(tool, {"x": value})


def test_the_arguments_given_are_never_changed() -> None:
    arguments: JsonObject = {"seed": "1", "options_json": '{"a": 1}', "nested": {"b": [1]}}
    before = json.dumps(arguments)
    to_request(recorded("chess_env").find("reset"), arguments)
    assert json.dumps(arguments) == before
