"""Examples are made for whatever can be made up, and there is none rather than a wrong one."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator
from testkit import catalog
from testkit.json_schemas import TREE
from testkit.toolsets import recorded

from openenv_client.frames import JsonObject
from openenv_gateway.mapping.contract import Contract
from openenv_gateway.mapping.references import read_document


def example(schema: JsonObject, **root: Any) -> Any:
    """The example for one required argument x with this schema; None if there is none."""
    document = read_document({"type": "object", "properties": {"x": schema}, "required": ["x"], **root}, "a test")
    found = Contract(document, document.root).example()
    if found is not None:
        Draft202012Validator(document.root).validate(found)
    return None if found is None else found["x"]


@pytest.mark.parametrize(
    ("schema", "made"),
    [
        ({"type": "string"}, "text"),
        ({"type": "string", "default": "pong"}, "pong"),
        ({"type": "string", "examples": ["e2e4"]}, "e2e4"),
        ({"type": "string", "examples": "e2e4"}, "text"),
        ({"type": "string", "pattern": "^[a-h][1-8][a-h][1-8]$"}, "e2e4"),
        ({"type": "string", "minLength": 30}, "x" * 30),
        ({"type": "string", "minLength": 30, "pattern": "^1+$"}, "1" * 30),
        ({"enum": ["UP", "DOWN"]}, "UP"),
        ({"const": {"a": [1]}}, {"a": [1]}),
        ({"type": "integer"}, 1),
        ({"type": "integer", "minimum": 10, "default": 3}, 10),
        ({"type": "integer", "maximum": -10}, -10),
        ({"type": "integer", "exclusiveMinimum": 10}, 11),
        ({"type": "integer", "exclusiveMaximum": -10}, -11),
        ({"type": "integer", "minimum": 10, "multipleOf": 7}, 14),
        ({"type": "number", "minimum": 0.2, "maximum": 0.3}, 0.2),
        ({"type": "number", "exclusiveMinimum": 0.2, "exclusiveMaximum": 0.3}, 0.25),
        ({"type": "number", "minimum": 5, "exclusiveMinimum": True}, 5),
        ({"type": "boolean"}, True),
        ({"const": False}, False),
        ({"type": "null"}, None),
        ({"type": "array", "items": {"type": "integer"}}, [1]),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 3}, [1, 1, 1]),
        ({"type": "array", "items": {"type": "integer"}, "maxItems": 0}, []),
        ({"type": "array", "prefixItems": [{"type": "integer"}, {"const": "a"}], "items": False}, [1, "a"]),
        ({"anyOf": [{"type": "null"}, {"type": "integer"}]}, 1),
        ({"anyOf": [{"type": "string", "pattern": "^no such$"}, {"type": "integer"}]}, 1),
        ({"type": "object", "properties": {"a": {"type": "integer"}, "b": {}}, "required": ["a"]}, {"a": 1}),
        ({"$ref": "#/$defs/Tree"}, {"value": 1}),
        ({"type": "array", "items": {"type": "string", "pattern": "^no such$"}}, []),
    ],
)
def test_an_example_is_made(schema: JsonObject, made: Any) -> None:
    assert example(schema, **{"$defs": {"Tree": TREE}}) == made


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": "^no such$"},
        {"type": "string", "minLength": 10_000},
        {"type": "array", "items": {"type": "string"}, "minItems": 10_000},
        {"type": "integer", "minimum": 2**60, "multipleOf": 3},
        {"type": "array", "items": {"type": "integer"}, "minItems": 2, "uniqueItems": True},
        {"$ref": "#/$defs/Endless"},
        {"type": "string", "not": {}},
        False,
    ],
)
def test_there_is_none_where_none_can_be_made(schema: Any) -> None:
    endless = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Endless"}}, "required": ["next"]}
    assert example(schema, **{"$defs": {"Endless": endless}}) is None


@pytest.mark.parametrize("env", catalog.described())
def test_every_tool_of_every_recorded_environment_has_one(env: str) -> None:
    for tool in recorded(env).tools:
        found = tool.contract.example()
        assert found is not None
        tool.contract.read(found)
