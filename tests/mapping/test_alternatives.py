"""A schema as flat alternatives: one type each, nothing composed, everything merged."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from jsonschema import Draft202012Validator
from testkit.json_schemas import VALUES, any_schemas

from openenv_client.frames import JsonObject
from openenv_gateway.errors import UnusableSchema
from openenv_gateway.mapping.alternatives import Alternatives
from openenv_gateway.mapping.references import read_document


def forms(schema: JsonObject) -> list[JsonObject]:
    document = read_document(schema, "a test")
    return [form.keywords for form in Alternatives(document).of(document.root)]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, [{"type": "string"}]),
        ({"type": ["string", "null"], "minLength": 1}, [{"type": "string", "minLength": 1}, {"type": "null"}]),
        ({"type": ["integer", "number"]}, [{"type": "number"}]),
        ({"const": 1}, [{"type": "integer", "enum": [1]}]),
        ({"enum": ["a", 1, "b"]}, [{"type": "string", "enum": ["a", "b"]}, {"type": "integer", "enum": [1]}]),
        ({"enum": [1, 2], "const": 2}, [{"type": "integer", "enum": [2]}]),
        ({"type": "number", "enum": [1, 0.5, "x"]}, [{"type": "number", "enum": [1, 0.5]}]),
        ({"type": "null", "enum": ["x"]}, []),
        ({"properties": {"a": True}}, [{"type": "object", "properties": {"a": True}}]),
        ({"minLength": 1, "minimum": 2}, [{"type": "string", "minLength": 1}, {"type": "number", "minimum": 2}]),
        ({"items": [{"const": 1}]}, [{"type": "array", "items": True, "prefixItems": [{"const": 1}]}]),
        ({"allOf": [{"type": "string"}, {"type": "null"}]}, []),
        ({"allOf": [{"type": "number"}, {"type": "integer"}]}, [{"type": "integer"}]),
        ({"allOf": [{"type": ["integer", "string"]}, {"type": "number", "minimum": 1}]}, [{"type": "integer", "minimum": 1}]),
        ({"allOf": [False, True]}, []),
        ({"allOf": [{"enum": [0.5]}, {"type": "integer"}]}, []),
        ({"type": ["string", "array"], "allOf": [{"minLength": 1}]}, [{"type": "string", "minLength": 1}, {"type": "array"}]),
        ({"allOf": [{"enum": ["a", "b"]}, {"enum": ["b", "c"]}]}, [{"type": "string", "enum": ["b"]}]),
        (
            {"allOf": [{"minimum": 1, "maximum": 9}, {"minimum": 2, "maximum": 8}]},
            [{"type": "number", "minimum": 2, "maximum": 8}],
        ),
        (
            {"allOf": [{"items": {"minimum": 1}, "uniqueItems": True}, {"items": {"maximum": 2}, "uniqueItems": False}]},
            [{"type": "array", "items": {"allOf": [{"minimum": 1}, {"maximum": 2}]}, "uniqueItems": True}],
        ),
        (
            {
                "allOf": [
                    {"properties": {"a": True, "b": False}, "required": ["a"], "patternProperties": {"x": True}},
                    {"properties": {"b": True, "c": True}, "required": ["c", "a"], "patternProperties": {"y": True}},
                ],
                "additionalProperties": True,
            },
            [
                {
                    "type": "object",
                    "additionalProperties": True,
                    "properties": {"a": True, "b": {"allOf": [False, True]}, "c": True},
                    "required": ["a", "c"],
                    "patternProperties": {"x": True, "y": True},
                }
            ],
        ),
        (
            {"additionalProperties": True, "allOf": [{"additionalProperties": {"type": "string"}}]},
            [{"type": "object", "additionalProperties": {"type": "string"}}],
        ),
        (
            {"additionalProperties": False, "allOf": [{"additionalProperties": {"type": "string"}}]},
            [{"type": "object", "additionalProperties": False}],
        ),
        (
            {"description": "outer", "anyOf": [{"type": "string", "description": "inner"}, {"type": "null"}]},
            [{"type": "string", "description": "inner"}, {"type": "null"}],
        ),
        (
            {"$ref": "#/$defs/A", "title": "own", "$defs": {"A": {"type": "string", "title": "A"}}},
            [{"type": "string", "title": "own"}],
        ),
    ],
)
def test_a_schema_is_flattened(schema: JsonObject, expected: list[JsonObject]) -> None:
    assert forms(schema) == expected


def test_anything_has_every_type_and_nothing_none() -> None:
    assert [form["type"] for form in forms({})] == ["string", "number", "boolean", "object", "array", "null"]
    assert forms({"not": {}, "anyOf": [False]}) == []


def test_the_references_that_lead_to_an_alternative_are_kept_in_order() -> None:
    schema: JsonObject = {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"type": "string"}}}
    document = read_document(schema, "a test")
    assert [form.references for form in Alternatives(document).of(document.root)] == [("#/$defs/A", "#/$defs/B")]


@settings(max_examples=500, suppress_health_check=[HealthCheck.too_slow])
@given(any_schemas(), VALUES)
def test_the_alternatives_of_a_typed_schema_accept_at_least_what_it_accepts(schema: JsonObject, value: Any) -> None:
    """Typed at the top, that is: an untyped schema with keywords of one type is read as that type."""
    schema = {**schema, "type": schema.get("type", "object")}
    try:
        document = read_document(schema, "a test")
        found = Alternatives(document).of(document.root)
    except UnusableSchema as error:
        assert "alternatives" in str(error)
        return
    if Draft202012Validator(schema).is_valid(value):
        whole = {"anyOf": [form.keywords for form in found], "$defs": schema["$defs"]}
        assert found
        assert Draft202012Validator(whole).is_valid(value)
