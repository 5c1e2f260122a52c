"""What the library gets is standard, complete and closed: nothing in it is refused, and nothing is ever fetched."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from testkit import catalog
from testkit.json_schemas import TREE, any_schemas

from openenv_client.frames import JsonObject
from openenv_gateway.mapping.references import read_document
from openenv_gateway.mapping.standalone import Rewriter, compiled, is_readable


def rewritten(schema: JsonObject) -> Any:
    found, _ = Rewriter(read_document(schema, "a test")).standalone(schema)
    assert isinstance(found, dict)
    return found if found.pop("$defs") == {} else None


@pytest.mark.parametrize(
    ("schema", "standard"),
    [
        ({"title": "T", "default": 1, "format": "uri", "x-own": [], "$id": "a", "type": "null"}, {"type": "null"}),
        ({"type": ["null", "null"], "required": ["a", "a"]}, {"type": ["null"], "required": ["a"]}),
        ({"uniqueItems": 0}, {"uniqueItems": False}),
        ({"minimum": 5, "exclusiveMinimum": True}, {"minimum": 5}),
        ({"exclusiveMaximum": 3}, {"exclusiveMaximum": 3}),
        ({"items": [{"type": "null"}], "additionalItems": False}, {"prefixItems": [{"type": "null"}], "items": False}),
        ({"items": []}, {"prefixItems": [True]}),
        ({"items": {"type": "null", "examples": [1]}}, {"items": {"type": "null"}}),
        ({"anyOf": [], "allOf": [], "oneOf": [True]}, {"anyOf": [False], "allOf": [True], "oneOf": [True]}),
        ({"dependentRequired": {"a": ["b", "b"]}}, {"dependentRequired": {"a": ["b"]}}),
        ({"pattern": "a(?=b)"}, {}),
        ({"patternProperties": {"^": True, "(?=b)": True}, "additionalProperties": False}, {"patternProperties": {"^": True}}),
        ({"patternProperties": {"(": True}, "unevaluatedProperties": False}, {}),
    ],
)
def test_a_schema_is_put_into_standard_form(schema: JsonObject, standard: JsonObject) -> None:
    assert rewritten(schema) == standard


def test_only_the_definitions_that_are_needed_come_along_each_once() -> None:
    document = read_document({"$defs": {"Tree": TREE, "Unused": {"type": "null"}}}, "a test")
    found, parts = Rewriter(document).standalone({"items": {"$ref": "#/$defs/Tree"}, "not": {"$ref": "#/$defs/Tree"}})
    assert isinstance(found, dict)
    assert len(found["$defs"]) == 1
    assert parts == 3 + 4
    assert compiled(found).is_valid([{"value": 1}])
    assert Rewriter(document).standalone(False) == (False, 1)


@settings(max_examples=500, suppress_health_check=[HealthCheck.too_slow])
@given(any_schemas())
def test_every_schema_that_was_read_compiles(schema: JsonObject) -> None:
    compiled(Rewriter(read_document(schema, "a test")).standalone(schema)[0])


@pytest.mark.parametrize("env", catalog.described())
def test_the_schemas_of_every_recorded_environment_compile(env: str) -> None:
    for schema in (catalog.description(env).action, catalog.description(env).observation):
        compiled(Rewriter(read_document(schema, env)).standalone(schema)[0])


@pytest.mark.parametrize("source", ["^[a-h][1-8]$", "\\p{L}+", "\\d", "a{2,5}", "é"])
def test_a_pattern_that_takes_linear_time_is_readable(source: str) -> None:
    assert is_readable(source)


@pytest.mark.parametrize("source", ["(", "(?=a)", "(?<!a)b", "(a)\\1", "a{10000000}", "(?P=n)"])
def test_one_that_might_take_longer_or_that_the_engine_does_not_know_is_not(source: str) -> None:
    assert not is_readable(source)


def test_the_library_cannot_fetch_a_schema() -> None:
    """`read_document` refuses such references, so that none gets this far; if one did, nobody would be asked."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        port = server.getsockname()[1]
        with pytest.raises(ValueError, match="Retrieval is disabled"):
            compiled({"$ref": f"http://127.0.0.1:{port}/schema.json"})
        with pytest.raises(BlockingIOError):
            server.accept()
