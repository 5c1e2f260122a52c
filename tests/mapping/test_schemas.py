"""Whatever an environment publishes: every host accepts what is advertised, and that accepts whatever the original accepts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from testkit import catalog
from testkit.host_rules import broken_rules
from testkit.json_schemas import NAMES, ODD_NAMES, TREE, action_schemas, any_schemas, instances_of, trees
from testkit.toolsets import made_of, recorded

from openenv_client.frames import JsonObject
from openenv_gateway.errors import UnusableSchema
from openenv_gateway.mapping.alternatives import Alternatives
from openenv_gateway.mapping.contract import Contract
from openenv_gateway.mapping.fitting import Unfit
from openenv_gateway.mapping.options import MappingOptions
from openenv_gateway.mapping.references import read_document
from openenv_gateway.mapping.shapes import shape_of
from openenv_gateway.mapping.tools import Handles

SLOW = [HealthCheck.too_slow]


def contract_of(schema: JsonObject) -> Contract:
    document = read_document(schema, "a test")
    return Contract(document, document.root)


def advertised(schema: JsonObject) -> JsonObject:
    return contract_of(schema).advertised


def prop(schema: JsonObject, **root: Any) -> JsonObject:
    """What is advertised for one property x with this schema."""
    shown = advertised({"type": "object", "properties": {"x": schema}, "additionalProperties": False, **root})
    assert broken_rules(shown) == []
    found: JsonObject = shown["properties"]["x"]
    return found


@pytest.mark.parametrize("exposure", ["full", "agent"])
@pytest.mark.parametrize("env", catalog.described())
def test_every_tool_of_every_recorded_environment_keeps_the_rules_of_all_hosts(env: str, exposure: Any) -> None:
    tools = recorded(env, MappingOptions(exposure=exposure))
    for handles in Handles:
        for tool in tools.advertised(handles):
            assert broken_rules(tool["inputSchema"]) == []
            assert broken_rules(tool["outputSchema"]) == []


@settings(max_examples=300, suppress_health_check=SLOW)
@given(any_schemas())
def test_any_schema_is_advertised_by_the_rules_or_refused(schema: JsonObject) -> None:
    try:
        shown = advertised({"type": "object", "properties": {"x": schema}, "$defs": schema["$defs"]})
    except UnusableSchema as error:
        assert "a test" in str(error)
    else:
        assert broken_rules(shown) == []


@settings(max_examples=150, suppress_health_check=SLOW)
@given(st.data())
@pytest.mark.parametrize("names", [NAMES, ODD_NAMES], ids=["names", "odd names"])
def test_what_the_original_accepts_is_accepted_as_advertised_and_comes_out_unchanged(names: Any, data: st.DataObject) -> None:
    schema = data.draw(action_schemas(names))
    value = data.draw(instances_of(schema, schema))
    contract = contract_of(schema)
    shown = _as_advertised(value, schema, contract)
    Draft202012Validator(contract.advertised).validate(shown)
    assert contract.read(shown) == value


@settings(max_examples=150, suppress_health_check=SLOW)
@given(st.data())
@pytest.mark.parametrize("names", [NAMES, ODD_NAMES], ids=["names", "odd names"])
def test_what_a_host_builds_from_declared_properties_alone_the_original_accepts(names: Any, data: st.DataObject) -> None:
    """Not so for what cannot be advertised: `not`, `if`, `contains`, dependencies, which item of a tuple is which, unique
    items, enums of objects, and patterns that not every host can read. Those are told in words or by the refusal."""
    schema = data.draw(action_schemas(names))
    contract = contract_of(schema)
    closed = _closed(contract.advertised)
    built = data.draw(instances_of(closed, closed))
    Draft202012Validator(schema).validate(contract.read(built))


@given(trees())
def test_recursive_values_are_accepted_to_any_depth(value: JsonObject) -> None:
    schema = {"type": "object", "properties": {"x": {"$ref": "#/$defs/Tree"}}, "$defs": {"Tree": TREE}}
    contract = contract_of(schema)
    Draft202012Validator(contract.advertised).validate({"x": value})
    assert contract.read({"x": value}) == {"x": value}


def test_recursion_is_shown_three_levels_deep_and_ends_in_any_object() -> None:
    level = prop({"$ref": "#/$defs/Tree"}, **{"$defs": {"Tree": TREE}})
    for _ in range(3):
        assert level["properties"]["value"]["type"] == "integer"
        level = level["properties"]["children"]["items"]
    assert list(level["properties"]) == ["options_json"]


def test_the_end_of_a_recursion_takes_the_rest_as_json_text() -> None:
    contract = contract_of({"type": "object", "properties": {"x": {"$ref": "#/$defs/Tree"}}, "$defs": {"Tree": TREE}})
    assert contract.read({"x": {"value": 1, "children": [{"options_json": '{"value": 2}'}]}}) == {
        "x": {"value": 1, "children": [{"value": 2}]}
    }


def test_recursive_lists_end_in_lists_of_anything_and_recursive_unions_in_their_plain_form() -> None:
    schema = {"$ref": "#/$defs/L"}
    deep = prop(schema, **{"$defs": {"L": {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/L"}, {"type": "string"}]}}}})
    assert deep["type"] == "array"
    words = prop(schema, **{"$defs": {"L": {"type": ["string", "array"], "items": {"$ref": "#/$defs/L"}}}})
    assert {branch["type"] for branch in words["anyOf"]} == {"string", "array"}


def test_a_recursion_with_many_branches_is_shown_less_deep_instead_of_growing_huge() -> None:
    wide = {"type": "object", "properties": {f"p{n}": {"$ref": "#/$defs/W"} for n in range(12)}}
    shown = prop({"$ref": "#/$defs/W"}, **{"$defs": {"W": wide}})
    assert list(shown["properties"]["p0"]["properties"]["p0"]["properties"]) == ["options_json"]


def test_a_schema_that_inlined_grows_beyond_all_bounds_is_refused_when_tools_are_built() -> None:
    definitions: JsonObject = {
        f"d{n}": {"type": "object", "properties": {"a": {"$ref": f"#/$defs/d{n + 1}"}, "b": {"$ref": f"#/$defs/d{n + 1}"}}}
        for n in range(30)
    }
    definitions["d30"] = {"type": "string"}
    with pytest.raises(UnusableSchema, match="more than 2000 parts"):
        prop({"$ref": "#/$defs/d0"}, **{"$defs": definitions})


@pytest.mark.parametrize(
    ("original", "shown"),
    [
        ({"const": "go"}, {"type": "string", "enum": ["go"], "description": 'X. Always "go".'}),
        ({"const": None}, {"type": "null", "description": "X."}),
        (
            {"enum": ["a", "b"], "default": "a"},
            {"type": "string", "enum": ["a", "b"], "description": 'X. One of "a", "b". Default: "a".', "default": "a"},
        ),
        (
            {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None, "title": "Some Count"},
            {"anyOf": [{"type": "integer"}, {"type": "null"}], "description": "Some count."},
        ),
        (
            {"type": ["string", "integer"], "minLength": 1, "minimum": 2},
            {
                "anyOf": [{"type": "string", "minLength": 1}, {"type": "integer", "minimum": 2}],
                "description": "X. A string: at least 1 character; an integer: at least 2.",
            },
        ),
        ({"oneOf": [{"type": "string"}, {"type": "string"}]}, {"type": "string", "description": "X."}),
        (
            {"allOf": [{"type": "integer", "minimum": 1}, {"minimum": 2, "maximum": 9}], "description": "Pick one"},
            {"type": "integer", "minimum": 2, "maximum": 9, "description": "Pick one. At least 2, at most 9."},
        ),
        ({"type": "string", "format": "date", "examples": ["x"]}, {"type": "string", "description": "X. In the format date."}),
        (
            {"type": "string", "pattern": "^[a-h]$"},
            {"type": "string", "pattern": "^[a-h]$", "description": "X. Matching the pattern ^[a-h]$."},
        ),
        ({"type": "string", "pattern": "(?i)^a"}, {"type": "string", "description": "X. Matching the pattern (?i)^a."}),
        ({"type": "string", "pattern": "\\p{L}"}, {"type": "string", "description": "X. Matching the pattern \\p{L}."}),
        (
            {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2, "maxItems": 2},
            {
                "type": "array",
                "minItems": 2,
                "maxItems": 2,
                "items": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
                "description": "X. Exactly 2 items, in this order: 1) an integer, 2) a string.",
            },
        ),
        (
            {"type": "array", "items": {"type": "integer"}, "uniqueItems": True, "minItems": 1, "maxItems": 4, "default": [1]},
            {
                "type": "array",
                "minItems": 1,
                "maxItems": 4,
                "items": {"type": "integer"},
                "description": "X. 1 to 4 items, no item twice. Default: [1].",
            },
        ),
        (
            {"type": "number", "minimum": 1, "exclusiveMinimum": True, "x-mcp-header": "x"},
            {"type": "number", "minimum": 1, "description": "X. At least 1."},
        ),
        ({"type": "number", "maximum": 1, "maxLength": 5}, {"type": "number", "maximum": 1, "description": "X. At most 1."}),
        ({"type": "string", "maxLength": 1}, {"type": "string", "maxLength": 1, "description": "X. At most 1 character."}),
        ({"type": "boolean", "default": True}, {"type": "boolean", "description": "X. Default: true.", "default": True}),
    ],
)
def test_a_property_is_rewritten_and_its_limits_are_told_in_words(original: JsonObject, shown: JsonObject) -> None:
    assert prop(original) == shown


def test_anything_is_shown_as_every_type_and_an_array_of_anything_has_typed_items() -> None:
    assert [branch["type"] for branch in prop({})["anyOf"]] == ["string", "number", "boolean", "object", "array", "null"]
    assert "anyOf" in prop({"type": "array"})["items"]
    assert "anyOf" in prop({"type": "array", "items": True})["items"]


def test_a_property_that_nothing_satisfies_is_not_shown() -> None:
    shown = advertised({"type": "object", "properties": {"x": False, "y": {"allOf": [{"type": "string"}, {"type": "null"}]}}})
    assert shown == {"type": "object", "properties": {}}


def test_an_array_that_must_be_empty_is_shown_with_items_all_the_same() -> None:
    assert broken_rules(advertised({"type": "object", "properties": {"x": {"type": "array", "items": False}}})) == []


def test_a_required_name_that_is_not_declared_is_shown_as_anything() -> None:
    shown = advertised({"type": "object", "properties": {}, "required": ["x"]})
    assert shown["required"] == ["x"]
    assert "anyOf" in shown["properties"]["x"]


def test_a_root_that_demands_one_of_two_arguments_is_one_object_with_both_optional() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
        "additionalProperties": False,
    }
    contract = contract_of(schema)
    assert list(contract.advertised["properties"]) == ["a", "b"]
    assert "required" not in contract.advertised
    with pytest.raises(Unfit):
        contract.read({})


def test_forms_of_one_root_that_disagree_about_a_property_show_both_kinds() -> None:
    forms = [{"type": "object", "properties": {"a": {"type": kind}}, "required": ["a"]} for kind in ("string", "null")]
    assert [branch["type"] for branch in advertised({"anyOf": forms})["properties"]["a"]["anyOf"]] == ["string", "null"]


def test_open_objects_get_a_typed_escape_beside_their_properties() -> None:
    shown = prop({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "integer"}})
    assert list(shown["properties"]) == ["a", "options_json"]
    assert shown["properties"]["options_json"] == {
        "type": "string",
        "description": "A JSON object in a string, with any further keys that are not listed here. Each is an integer.",
    }
    assert list(prop({"type": "object"})["properties"]) == ["options_json"]
    taken = prop({"type": "object", "properties": {"options_json": {"type": "string"}}, "additionalProperties": True})
    assert list(taken["properties"]) == ["options_json", "options_json_2"]


def test_a_class_that_merely_does_not_forbid_further_keys_is_not_shown_as_open() -> None:
    assert prop({"type": "object", "properties": {"a": {"type": "string"}}})["properties"].keys() == {"a"}


def test_attributes_that_only_the_docstring_describes_are_described_from_it() -> None:
    tools = recorded("atari_env")
    properties = tools.find("step").input_schema["properties"]
    assert properties["action_id"]["description"] == "The integer action ID to take (from legal_actions)."
    assert "Attributes:" not in tools.find("step").description


def test_classes_in_a_union_keep_their_own_descriptions() -> None:
    go = {"type": "object", "properties": {}, "description": "Go."}
    shown = prop({"anyOf": [go, {"type": "null"}], "description": "What next?"})
    assert shown["description"] == "What next?"
    assert shown["anyOf"][0]["description"] == "Go."


def test_the_stray_metadata_is_not_shown_but_accepted() -> None:
    step = recorded("chess_env").find("step")
    assert list(step.input_schema["properties"]) == ["move"]
    assert step.contract.read({"move": "e2e4", "metadata": {"a": 1}}) == {"move": "e2e4", "metadata": {"a": 1}}
    assert step.contract.read({"move": "e2e4", "metadata": None}) == {"move": "e2e4"}


def test_metadata_that_the_action_needs_is_shown() -> None:
    needed = {"type": "object", "properties": {"metadata": {"type": "object"}}, "required": ["metadata"]}
    assert list(made_of(needed).find("step").input_schema["properties"]) == ["metadata"]


def _closed(schema: Any) -> Any:
    """The schema as a strict host reads it: no other keys than the declared ones, and here not the escape either."""
    if isinstance(schema, list):
        return [_closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(value) for key, value in schema.items() if key != "options_json"}
    return {**closed, "additionalProperties": False} if schema.get("type") == "object" else closed


def _as_advertised(value: JsonObject, schema: JsonObject, contract: Contract) -> JsonObject:
    """The value under the advertised names, at every level of the schema."""
    return _renamed(value, schema, Alternatives(read_document(schema, "a test")), schema["$defs"])  # type: ignore[no-any-return]


def _renamed(value: Any, schema: Any, alternatives: Alternatives, definitions: JsonObject) -> Any:
    for form in alternatives.of(schema):
        if not Draft202012Validator({**form.keywords, "$defs": definitions}).is_valid(value):
            continue
        if isinstance(value, dict) and form.type == "object":
            shape = shape_of(form.keywords)
            shown = {original: name for name, original in shape.names.items()}
            found = ((key, item, shape.properties.get(key, True)) for key, item in value.items())
            children = {key: _renamed(item, child, alternatives, definitions) for key, item, child in found}
            return {shown.get(key, key): item for key, item in children.items()}
        if isinstance(value, list) and form.type == "array":
            return [_renamed(item, form.keywords.get("items", True), alternatives, definitions) for item in value]
    return value
