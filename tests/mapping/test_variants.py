"""A union of actions becomes one tool per variant, and the gateway fills in what tells them apart."""

from __future__ import annotations

from typing import Any

import pytest
from testkit.host_rules import broken_rules
from testkit.toolsets import made_of

from openenv_client.description import Description
from openenv_client.frames import JsonObject
from openenv_gateway.errors import InvalidArguments, UnusableSchema
from openenv_gateway.mapping.actions import Request, to_request
from openenv_gateway.mapping.options import MappingOptions
from openenv_gateway.mapping.tools import build_tools, is_mcp_environment
from openenv_gateway.mapping.toolset import ToolKind, ToolSet


def variant(name: str, value: str | None, **properties: JsonObject) -> JsonObject:
    kind = {"kind": {"const": value, "default": value, "type": "string"}} if value else {}
    return {
        "type": "object",
        "title": name,
        "description": f"To {name}.",
        "properties": {**kind, **properties},
        "required": list(properties),
        "additionalProperties": False,
    }


MOVE = variant("MoveAction", "move-to", x={"type": "integer"})
SAY = variant("SayAction", "say", text={"type": "string"})
METADATA = {"metadata": {"type": "object", "additionalProperties": True}}


def names(tools: ToolSet) -> list[str]:
    return [tool.name for tool in tools.tools if tool.kind is ToolKind.VARIANT]


UNIONS: list[JsonObject] = [
    {"oneOf": [MOVE, SAY]},
    {"anyOf": [MOVE, SAY, {"type": "null"}]},
    {"anyOf": [{"$ref": "#/$defs/M"}, {"$ref": "#/$defs/S"}], "$defs": {"M": MOVE, "S": SAY}},
    {"$ref": "#/$defs/Action", "$defs": {"Action": {"anyOf": [MOVE, SAY]}}},
    {"oneOf": [MOVE, SAY], "discriminator": {"propertyName": "kind", "mapping": {}}, "type": "object"},
]


@pytest.mark.parametrize("action", UNIONS)
def test_each_variant_is_a_tool_named_by_its_discriminator_which_is_filled_in(action: JsonObject) -> None:
    tools = made_of(action)
    assert names(tools) == ["step_move-to", "step_say"]
    say = tools.find("step_say")
    assert list(say.input_schema["properties"]) == ["text"]
    assert broken_rules(say.input_schema) == []
    assert "To SayAction." in say.description
    assert to_request(say, {"text": "hi"}) == Request("step", {"kind": "say", "text": "hi"})
    assert to_request(say, {"text": "hi", "kind": None}).data == {"kind": "say", "text": "hi"}
    assert to_request(say, {"text": "hi", "kind": "say"}).data == {"kind": "say", "text": "hi"}
    with pytest.raises(InvalidArguments, match='at kind expected "say", got "move-to"'):
        to_request(say, {"text": "hi", "kind": "move-to"})
    with pytest.raises(InvalidArguments, match='Arguments that would pass: {"x": 1}'):
        to_request(tools.find("step_move-to"), {"x": "far"})


def test_conditions_beside_the_union_hold_for_every_variant() -> None:
    tools = made_of({"anyOf": [MOVE, SAY], "required": ["kind"], "title": "Action", "description": "Any.", "maxProperties": 2})
    assert to_request(tools.find("step_say"), {"text": "hi"}).data == {"kind": "say", "text": "hi"}


def test_variants_without_a_discriminator_are_named_by_their_classes() -> None:
    action = {
        "anyOf": [
            variant("MoveAction", None, x={"type": "integer"}),
            {"$ref": "#/$defs/SayIt"},
            {**variant("", None, z={"type": "string"})},
        ],
        "$defs": {"SayIt": {"type": "object", "properties": {"text": {"type": "string"}}}},
    }
    tools = made_of(action)
    assert names(tools) == ["step_move", "step_say_it", "step_variant_3"]
    assert to_request(tools.find("step_move"), {"x": 1}) == Request("step", {"x": 1})


def test_a_discriminator_that_only_the_mapping_gives_is_filled_in_too() -> None:
    kinds = {"kind": {"type": "string"}}
    action = {
        "oneOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}],
        "discriminator": {"propertyName": "kind", "mapping": {"a": "#/$defs/A", "b": "#/$defs/B"}},
        "$defs": {"A": {"type": "object", "properties": kinds}, "B": {"type": "object", "properties": kinds}},
    }
    tools = made_of(action)
    assert names(tools) == ["step_a", "step_b"]
    assert to_request(tools.find("step_b"), {}) == Request("step", {"kind": "b"})


@pytest.mark.parametrize(
    "discriminator",
    [
        {"propertyName": "kind"},
        {"propertyName": "kind", "mapping": []},
        {"propertyName": "kind", "mapping": {"a": "#/x"}},
        {"mapping": {"a": "#/$defs/A"}},
        "kind",
    ],
)
def test_a_discriminator_that_tells_nothing_is_left_to_the_agent(discriminator: Any) -> None:
    kinds = {"kind": {"type": "string"}}
    branches = [{"type": "object", "properties": kinds, "title": title} for title in ("OneAction", "OtherAction")]
    tools = made_of({"oneOf": branches, "discriminator": discriminator})
    assert names(tools) == ["step_one", "step_other"]
    assert list(tools.find("step_one").input_schema["properties"]) == ["kind"]


def test_variants_of_the_same_name_get_different_tool_names() -> None:
    tools = made_of({"anyOf": [variant("MoveAction", None, **{name: {"type": "integer"}}) for name in ("x", "y")]})
    first, second = names(tools)
    assert first == "step_move"
    assert second.startswith("step_move_")


def test_mere_conditions_and_single_objects_are_no_union() -> None:
    either = {"type": "object", "properties": {"a": {}, "b": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}
    assert names(made_of(either)) == []
    assert names(made_of({"anyOf": [SAY, {"type": "null"}]})) == []
    assert names(made_of({"$ref": "#/$defs/S", "$defs": {"S": SAY}})) == []


def test_the_stray_metadata_of_a_variant_is_not_shown() -> None:
    tools = made_of({"anyOf": [{**SAY, "properties": {**SAY["properties"], **METADATA}}, MOVE]})
    assert list(tools.find("step_say").input_schema["properties"]) == ["text"]


def test_an_mcp_environment_with_actions_of_its_own_beside_has_both() -> None:
    call = {"type": "object", "properties": {"type": {"const": "call_tool"}, "tool_name": {"type": "string"}}}
    list_tools = {"type": "object", "properties": {"type": {"const": "list_tools"}}}
    move = {"type": "object", "properties": {"type": {"const": "move"}, "x": {"type": "integer"}}, "required": ["x"]}
    description = Description(action={"anyOf": [list_tools, call, move]}, observation={})
    assert is_mcp_environment(description)
    tools = build_tools(description, MappingOptions(), [{"name": "look"}])
    assert [tool.name for tool in tools.tools] == ["reset", "look", "step_move", "state"]
    assert to_request(tools.find("step_move"), {"x": 1}).data == {"type": "move", "x": 1}


def test_an_action_that_is_no_object_is_refused() -> None:
    for action in ({"type": "string"}, {"anyOf": [{"type": "string"}, {"type": "null"}]}):
        with pytest.raises(UnusableSchema, match="accepts no object"):
            made_of(action)


def test_a_schema_that_refers_to_itself_without_end_is_refused() -> None:
    with pytest.raises(UnusableSchema, match="refers to itself without end"):
        made_of({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"anyOf": [{"$ref": "#/$defs/A"}]}}})


def test_too_many_combinations_are_refused() -> None:
    union = {"anyOf": [{"type": "object", "properties": {f"p{n}": {"type": "string"}}} for n in range(15)]}
    with pytest.raises(UnusableSchema, match="more than 200 alternatives"):
        made_of({"type": "object", "properties": {"x": {"allOf": [union, union]}}})


def test_references_nested_deeper_than_the_stack_are_refused() -> None:
    definitions: JsonObject = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}]} for n in range(2000)}
    definitions["d2000"] = {"type": "string"}
    with pytest.raises(UnusableSchema):
        made_of({"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": definitions})
