"""Arguments as hosts send them, read as the schema means them where it leaves no doubt."""

from __future__ import annotations

from typing import Any

import pytest
from testkit.json_schemas import TREE
from testkit.toolsets import made_of, recorded

from openenv_client.frames import JsonObject
from openenv_gateway.errors import InvalidArguments
from openenv_gateway.mapping.actions import to_request
from openenv_gateway.mapping.toolset import Tool


def step(action: JsonObject) -> Tool:
    return made_of(action).find("step")


def refusal(tool: Tool, arguments: Any) -> str:
    with pytest.raises(InvalidArguments) as caught:
        to_request(tool, arguments)
    return str(caught.value)


def read(schema: JsonObject, value: Any, **root: Any) -> Any:
    """What the environment gets for one argument x with this schema."""
    tool = step({"type": "object", "properties": {"x": schema}, "additionalProperties": False, **root})
    return to_request(tool, {"x": value}).data


def test_a_bad_escape_is_refused_and_never_sent_as_a_key_of_its_own() -> None:
    for bad in ("size=3", "[1]", 7):
        message = refusal(recorded("chess_env").find("reset"), {"options_json": bad})
        assert "at options_json expected a JSON object in a string" in message


@pytest.mark.parametrize(
    ("schema", "sent", "meant"),
    [
        ({"type": "integer"}, "7", 7),
        ({"type": "integer"}, " -7 ", -7),
        ({"type": "integer"}, "7.0", 7.0),
        ({"type": "number"}, "1e3", 1000.0),
        ({"type": "boolean"}, "true", True),
        ({"type": "boolean"}, "False", False),
        ({"type": "object", "properties": {"a": {"type": "integer"}}}, '{"a": "1"}', {"a": 1}),
        ({"type": "array", "items": {"type": "integer"}}, "[1, 2]", [1, 2]),
        ({"type": "array", "items": {"type": "integer"}}, ["1", 2], [1, 2]),
        ({"type": "array", "prefixItems": [{"type": "integer"}], "items": {"type": "boolean"}}, ["1", "true"], [1, True]),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "null", None),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, None, None),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "7", "7"),
        ({"anyOf": [{"const": "auto"}, {"type": "integer"}]}, "7", 7),
        ({"type": "string"}, "7", "7"),
        ({"enum": [1, 2]}, "2", 2),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, {"a": "1"}, {"a": 1}),
        ({"type": "object"}, {"options_json": '{"a": 1}'}, {"a": 1}),
        ({"$ref": "#/$defs/Tree"}, {"value": "1", "children": '[{"value": 2}]'}, {"value": 1, "children": [{"value": 2}]}),
    ],
)
def test_a_value_is_read_as_what_the_schema_leaves_no_doubt_about(schema: JsonObject, sent: Any, meant: Any) -> None:
    assert read(schema, sent, **{"$defs": {"Tree": TREE}}) == {"x": meant}


@pytest.mark.parametrize(
    ("schema", "sent"),
    [
        ({"type": "integer"}, "seven"),
        ({"type": "integer"}, "7.5"),
        ({"type": "integer"}, "9" * 5000),
        ({"type": "integer"}, ""),
        ({"type": "number"}, "NaN"),
        ({"type": "number"}, "1e999"),
        ({"type": "number"}, '"7"'),
        ({"type": "boolean"}, 1),
        ({"type": "boolean"}, "yes"),
        ({"type": "string"}, 7),
        ({"type": "array", "items": {"type": "integer"}}, 7),
        ({"type": "array", "items": {"type": "integer"}}, "[" * 5000),
        ({"type": "object", "properties": {}}, "[]"),
        ({"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "array", "items": {"type": "number"}}]}, ["x"]),
        ({"type": "object"}, {"options_json": "no"}),
        ({"type": "array", "items": {"type": "object"}}, [{"options_json": "no"}]),
        ({"anyOf": [{"type": "object"}, {"type": "null"}]}, {"options_json": "no"}),
    ],
)
def test_nothing_else_is_guessed(schema: JsonObject, sent: Any) -> None:
    with pytest.raises(InvalidArguments):
        read(schema, sent)


def test_two_readings_of_one_text_are_a_doubt() -> None:
    forms = [{"type": "object", "properties": {"a": {"type": kind}}, "required": ["a"]} for kind in ("integer", "boolean")]
    assert read({"anyOf": forms}, {"a": "1"}) == {"x": {"a": 1}}
    lists = [{"type": "array", "items": {"type": "integer"}}, {"type": "array", "items": {"type": ["integer", "null"]}}]
    assert read({"anyOf": lists}, ["1"]) == {"x": [1]}  # both read it alike
    apart = [{"type": "object", "properties": {name: {"type": "integer"}}} for name in ("a", "b")]
    with pytest.raises(InvalidArguments):
        read({"anyOf": apart}, {"a": "1", "b": "2"})  # read as the one, b stays a text; read as the other, a does


def test_a_null_for_an_argument_that_may_not_be_null_is_an_argument_left_out() -> None:
    git = recorded("git_env").find("step")
    sent = {"action_type": "x", "repo_name": None, "target_dir": None}
    assert to_request(git, sent).data == {"action_type": "x", "target_dir": None}
    assert "the required move" in refusal(recorded("chess_env").find("step"), {"move": None})


def test_a_null_within_a_nested_object_is_left_out_too() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a"]}
    assert read(schema, {"a": 1, "b": None}) == {"x": {"a": 1}}
    assert read({"anyOf": [schema, {"type": "null"}]}, {"a": 1, "b": None}) == {"x": {"a": 1}}


def test_names_that_hosts_refuse_go_under_others_and_come_back() -> None:
    properties = {"_private": {"type": "string"}, "$x": {"type": "object", "properties": {"a.b": {"type": "integer"}}}}
    tool = step({"type": "object", "properties": properties, "additionalProperties": False})
    assert list(tool.input_schema["properties"]) == ["private", "x"]
    assert to_request(tool, {"private": "p", "x": {"a_b": 1}}).data == {"_private": "p", "$x": {"a.b": 1}}
    assert to_request(tool, {"_private": "p"}).data == {"_private": "p"}
