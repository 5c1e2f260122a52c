"""A schema is checked once, as a whole, when tools are built: what passes can be walked without looking again."""

from __future__ import annotations

from typing import Any

import pytest
from testkit import catalog

from openenv_client.frames import JsonObject
from openenv_gateway.errors import UnusableSchema
from openenv_gateway.mapping.references import MAX_DEPTH, MAX_SCHEMAS, read_document


def refused(schema: Any) -> str:
    with pytest.raises(UnusableSchema) as caught:
        read_document(schema, "the action")
    text = str(caught.value)
    assert text.startswith("The schema of the action cannot be used: ")
    return text.partition(": ")[2]


@pytest.mark.parametrize("env", catalog.described())
def test_every_recorded_schema_is_read(env: str) -> None:
    for schema in (catalog.description(env).action, catalog.description(env).observation):
        assert read_document(schema, env).root == schema


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (None, "it is NoneType, not an object"),
        ([1], "it is list, not an object"),
        ({"type": "text"}, "type at # is not one of string, integer"),
        ({"type": []}, "type at # is not one of"),
        ({"type": ["string", 1]}, "type at # is not one of"),
        ({"properties": [1]}, "properties at # is not an object"),
        ({"properties": {"a": 1}}, "#/properties/a is int, not a schema"),
        ({"anyOf": {}}, "anyOf at # is not a list"),
        ({"items": {"enum": 1}}, "enum at #/items is not a list"),
        ({"items": [{"minLength": -1}]}, "minLength at #/items/0 is not a whole number from 0 on"),
        ({"minItems": 1.5}, "minItems at # is not a whole number from 0 on"),
        ({"maximum": float("inf")}, "maximum at # is not a number"),
        ({"maximum": True}, "maximum at # is not a number"),
        ({"items": [True], "additionalItems": 1}, "#/additionalItems is int, not a schema"),
        ({"const": "\ud800"}, "it is not JSON, or is nested too deeply"),
        ({"default": object()}, "it is not JSON, or is nested too deeply"),
        ({"minItems": True}, "minItems at # is not a whole number from 0 on"),
        ({"required": "a"}, "required at # is not a list of names"),
        ({"pattern": 1}, "pattern at # is not a text"),
        ({"minimum": "1"}, "minimum at # is not a number"),
        ({"multipleOf": 0}, "multipleOf at # is not a number above 0"),
        ({"dependentRequired": {"a": 1}}, "dependentRequired at # is not lists of names"),
        ({"dependentRequired": []}, "dependentRequired at # is not lists of names"),
        ({"not": "x"}, "#/not is str, not a schema"),
        ({"$dynamicRef": "#x"}, "$dynamicRef at # is not supported; use $ref"),
        ({"$ref": "https://example.org/schema.json"}, "only references within the schema itself"),
        ({"$ref": "other.json#/a"}, "only references within the schema itself"),
        ({"$ref": "#anchor"}, "only references within the schema itself"),
        ({"$ref": "#/$defs/Missing"}, "its reference '#/$defs/Missing' leads nowhere"),
        ({"$ref": "#/anyOf/2", "anyOf": [True]}, "leads nowhere"),
        ({"$ref": "#/anyOf/x", "anyOf": [True]}, "leads nowhere"),
        ({"$ref": "#/title/x", "title": "t"}, "leads nowhere"),
        ({"$ref": "#/title", "title": "t"}, "names no schema"),
        ({"$ref": "#/default", "default": {"type": 7}}, "type at #/$ref is not one of"),
    ],
)
def test_a_malformed_schema_or_a_reference_elsewhere_is_refused_with_its_place(schema: Any, reason: str) -> None:
    assert reason in refused(schema)


def test_references_within_the_schema_are_followed_with_their_escapes() -> None:
    document = read_document({"$defs": {"a/b~%": {"type": "integer"}}, "allOf": [True, {"title": "t"}]}, "x")
    assert document.follow("#/$defs/a~1b~0%25") == {"type": "integer"}
    assert document.follow("#/allOf/1") == {"title": "t"}
    assert document.follow("#/allOf/0") is True
    assert document.follow("#") is document.root


def test_a_schema_that_is_too_deep_or_too_big_is_refused() -> None:
    deep: JsonObject = {}
    for _ in range(MAX_DEPTH + 1):
        deep = {"items": deep}
    assert "more than 64 levels deep at #/items/items" in refused(deep)
    assert "more than 5000 parts" in refused({"anyOf": [{"const": n} for n in range(MAX_SCHEMAS + 1)]})


def test_recursive_definitions_are_no_endless_schema() -> None:
    schema = {"$ref": "#/$defs/T", "$defs": {"T": {"items": {"$ref": "#/$defs/T"}}}}
    assert read_document(schema, "x").root == schema
