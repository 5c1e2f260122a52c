"""Limits in words, for hosts that drop the keywords."""

from __future__ import annotations

from typing import Any

import pytest

from openenv_client.frames import JsonObject
from openenv_gateway.mapping.alternatives import Alternatives
from openenv_gateway.mapping.references import read_document
from openenv_gateway.mapping.wording import described, kind_of, limits_of


def limits(schema: JsonObject) -> str:
    return limits_of(Alternatives(read_document(schema, "a test")), schema)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "string"}, ""),
        ({"enum": ["a", 2]}, 'a string: always "a"; an integer: always 2'),
        ({"type": "integer", "minimum": 0, "exclusiveMaximum": 7}, "at least 0, less than 7"),
        ({"type": "number", "exclusiveMinimum": 0, "maximum": 1}, "more than 0, at most 1"),
        ({"type": "number", "multipleOf": 0.5}, "a multiple of 0.5"),
        ({"type": "string", "minLength": 1}, "at least 1 character"),
        ({"type": "string", "minLength": 2, "maxLength": 2}, "exactly 2 characters"),
        ({"type": "array", "minItems": 1, "maxItems": 3}, "1 to 3 items"),
        ({"type": "array", "minItems": 0, "maxItems": 0}, "at most 0 items"),
        ({"type": "object", "maxProperties": 1}, "at most 1 key"),
        ({"type": "object", "additionalProperties": {"type": ["integer", "null"]}}, "any keys, each with an integer or null"),
        ({"type": "object", "additionalProperties": {}}, ""),
        ({"type": "array", "uniqueItems": True}, "no item twice"),
        ({"type": "array", "prefixItems": [{}, False]}, "in this order: 1) any value, 2) no value"),
        ({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]}, "at least 1"),
        ({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string"}]}, "an integer: at least 1"),
    ],
)
def test_limits_are_told(schema: JsonObject, words: str) -> None:
    assert limits(schema) == words


def test_long_enums_patterns_and_defaults_are_cut() -> None:
    assert len(limits({"enum": [f"word {n}" for n in range(1000)]})) < 500
    assert len(limits({"type": "string", "pattern": "a" * 5000})) < 400
    schema: JsonObject = {"type": "string", "default": "x" * 5000}
    assert len(described(None, "x", None, Alternatives(read_document(schema, "a test")), schema)) < 400


@pytest.mark.parametrize(
    ("said", "title", "text"),
    [
        ("Go where?", "Title", "Go where? At least 1."),
        ("  Where to go ", "Title", "Where to go. At least 1."),
        (None, "Move Action", "Move action. At least 1."),
        ("", None, "Target dir. At least 1."),
        (None, 5, "Target dir. At least 1."),
    ],
)
def test_a_property_without_a_description_is_described_by_its_title_or_name(said: str | None, title: Any, text: str) -> None:
    schema: JsonObject = {"type": "integer", "minimum": 1}
    alternatives = Alternatives(read_document(schema, "a test"))
    assert described(said, "target_dir", title, alternatives, schema) == text


def test_kinds_are_named() -> None:
    schema: JsonObject = {}
    alternatives = Alternatives(read_document(schema, "a test"))
    assert kind_of(alternatives, True) == "any value"
    assert kind_of(alternatives, False) == "no value"
    assert kind_of(alternatives, {"type": ["object", "array"]}) == "an object or an array"
