"""With `schemas = "native"` a tool's schema is the environment's own, and decides as it always does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from testkit import catalog
from testkit.json_schemas import ODD_NAMES, TREE, VALUES, action_schemas, any_schemas, instances_of
from testkit.toolsets import recorded

from openenv_client.description import Description
from openenv_client.frames import JsonObject
from openenv_gateway.errors import InvalidArguments, UnusableSchema
from openenv_gateway.mapping.actions import to_request
from openenv_gateway.mapping.contract import Contract
from openenv_gateway.mapping.fitting import Unfit
from openenv_gateway.mapping.options import MappingOptions
from openenv_gateway.mapping.references import read_document
from openenv_gateway.mapping.tools import Handles, ToolSet, build_tools

NATIVE = MappingOptions(schemas="native")
SLOW = [HealthCheck.too_slow]
CONTACT: JsonObject = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"$anchor": "home", "type": "object", "properties": {"city": {"type": "string"}}}},
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "second": {"$ref": "#home"},
        "by": {"enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "_email": {"type": "string", "format": "email"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["_email"]}]}],
    "if": {"properties": {"by": {"const": "phone"}}, "required": ["by"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["_email"]},
    "additionalProperties": False,
}


def native(schema: JsonObject) -> Contract:
    document = read_document(schema, "a test")
    return Contract(document, document.root, style="native")


def acting(action: JsonObject) -> ToolSet:
    return build_tools(Description(action=action, observation={}), NATIVE)


def test_every_keyword_of_the_environment_is_kept() -> None:
    assert native(CONTACT).advertised == CONTACT


@pytest.mark.parametrize("env", catalog.described())
def test_the_tools_of_recorded_environments_show_their_servers_schemas(env: str) -> None:
    action = catalog.description(env).action
    for tool in recorded(env, NATIVE).tools:
        if tool.name == "step":
            assert tool.input_schema == action
        Draft202012Validator.check_schema(tool.input_schema)
        assert tool.input_schema["type"] == "object"


@settings(max_examples=150, suppress_health_check=SLOW)
@given(st.data())
def test_what_fits_the_shown_schema_is_what_the_environment_gets(data: st.DataObject) -> None:
    schema = data.draw(action_schemas(ODD_NAMES))
    value = data.draw(instances_of(schema, schema))
    contract = native(schema)
    Draft202012Validator(contract.advertised).validate(value)
    assert contract.read(value) == value


@settings(max_examples=200, suppress_health_check=SLOW)
@given(any_schemas(), st.dictionaries(st.sampled_from(["move", "text"]), VALUES, max_size=2))
def test_any_schema_means_the_same_as_shown(schema: JsonObject, value: JsonObject) -> None:
    try:
        shown = native(schema).advertised
    except UnusableSchema:
        return
    assert Draft202012Validator(shown).is_valid(value) == Draft202012Validator(schema).is_valid(value)


CLOSED: JsonObject = {"type": "object", "properties": {}, "additionalProperties": False}
REFERRED: JsonObject = {"$ref": "#/$defs/C", "$defs": {"C": CLOSED}}


@pytest.mark.parametrize("schema", [CONTACT, REFERRED])
def test_the_handle_stands_among_the_arguments_even_of_a_closed_schema(schema: JsonObject) -> None:
    (_, step, _) = acting(schema).advertised(Handles.REQUIRED)
    assert step["inputSchema"]["required"] == ["session_id"]
    unknown = Draft202012Validator(step["inputSchema"]).iter_errors({"session_id": "x"})
    assert "additionalProperties" not in {error.validator for error in unknown}


def test_arguments_that_do_not_fit_are_refused_with_an_example_in_the_environments_words() -> None:
    step = acting({**CONTACT, "required": ["_email"]}).find("step")
    with pytest.raises(InvalidArguments, match=r'at _email expected a string, .*would pass: \{"_email": "text"\}'):
        to_request(step, {"_email": 5, "by": "email"})


def test_what_hosts_send_in_another_form_is_still_understood() -> None:
    contract = native({"type": "object", "properties": {"x": {"type": "integer"}, "_y": {"type": "string"}}})
    assert contract.read({"x": "7", "_y": None}) == {"x": 7}


def test_a_recursive_schema_is_shown_whole_and_checked_within_bounds() -> None:
    schema = {"type": "object", "properties": {"x": {"$ref": "#/$defs/Tree"}}, "$defs": {"Tree": TREE}}
    contract = native(schema)
    assert contract.advertised == schema
    deep: Any = {"value": 1}
    for _ in range(30):
        deep = {"value": 1, "children": [deep]}
    assert contract.read({"x": deep}) == {"x": deep}
    for _ in range(100):
        deep = {"value": 1, "children": [deep]}
    with pytest.raises(Unfit, match="smaller or less deeply nested"):
        contract.read({"x": deep})


CIRCLE: JsonObject = {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}


@pytest.mark.parametrize("schema", [CIRCLE, {"$ref": "#nowhere"}, {"type": "array"}])
def test_what_cannot_be_checked_is_refused_when_tools_are_built(schema: JsonObject) -> None:
    with pytest.raises(UnusableSchema):
        native(schema)


MOVE: JsonObject = {
    "type": "object",
    "properties": {"kind": {"const": "move"}, "to": {"$ref": "#/$defs/Cell"}},
    "required": ["kind", "to"],
    "additionalProperties": False,
}
SAY: JsonObject = {"type": "object", "properties": {"kind": {"const": "say"}, "text": {"type": "string"}}, "required": ["text"]}
CELL: JsonObject = {"type": "integer", "minimum": 1}


def test_each_variant_of_a_union_shows_its_own_branch_with_the_definitions() -> None:
    definitions = {"Cell": CELL, "Move": MOVE}
    tools = acting({"oneOf": [{"$ref": "#/$defs/Move"}, SAY], "$defs": definitions})
    move = tools.find("step_move")
    assert move.input_schema == {**MOVE, "$defs": definitions}
    assert to_request(move, {"to": 3}).data == to_request(move, {"kind": "move", "to": 3}).data == {"kind": "move", "to": 3}
    with pytest.raises(InvalidArguments):
        to_request(move, {"to": 0})


def test_what_all_variants_share_is_shown_with_each() -> None:
    common: JsonObject = {"properties": {"why": {"type": "string"}}, "required": ["why"]}
    tools = acting({"oneOf": [MOVE, SAY], "$defs": {"Cell": CELL}, **common})
    assert tools.find("step_say").input_schema == {**SAY, "$defs": {"Cell": CELL}, "allOf": [common]}


def test_a_variant_that_refers_to_a_place_outside_of_the_definitions_is_shown_in_the_portable_form() -> None:
    ask = {**SAY, "properties": {"kind": {"const": "ask"}, "text": {"$ref": "#/oneOf/0/properties/text"}}}
    tools = acting({"oneOf": [SAY, ask]})
    assert tools.find("step_say").input_schema == SAY
    shown = tools.find("step_ask").input_schema
    assert shown["properties"]["text"]["type"] == "string"
    assert "kind" not in shown["properties"]


def header(name: Any, **schema: Any) -> JsonObject:
    return {"type": "string", "x-mcp-header": name, **schema}


def test_annotations_for_headers_are_kept_all_or_none() -> None:
    good: JsonObject = {"type": "object", "properties": {"region": header("Region"), "zone": header("Zone")}}
    assert native(good).advertised == good
    assert {mirror.header for mirror in native(good).mirrors} == {"mcp-param-region", "mcp-param-zone"}
    bad: JsonObject = {"type": "object", "properties": {"region": header("Region"), "zone": header("a b")}}
    plain = {"type": "string"}
    assert native(bad).advertised == {"type": "object", "properties": {"region": plain, "zone": plain}}
    assert native(bad).mirrors == ()
    assert bad["properties"]["zone"] == header("a b"), "what the server gave is left as it was"


def test_the_portable_form_has_no_headers() -> None:
    document = read_document({"type": "object", "properties": {"region": header("Region")}}, "a test")
    assert Contract(document, document.root).mirrors == ()
