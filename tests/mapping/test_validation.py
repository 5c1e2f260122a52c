"""The check agrees with a general validator on everything, and never hangs."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from jsonschema import Draft202012Validator
from testkit.json_schemas import TREE, VALUES, any_schemas, trees

from openenv_client.frames import JsonObject
from openenv_gateway.mapping.faults import Budget, Fault, TooMuchWork
from openenv_gateway.mapping.references import read_document
from openenv_gateway.mapping.validation import Validator


def fault(schema: JsonObject, value: Any) -> Fault | None:
    document = read_document(schema, "a test")
    return Validator(document).check(document.root)(value, Budget())


@settings(max_examples=1000, suppress_health_check=[HealthCheck.too_slow])
@given(any_schemas(), VALUES)
def test_every_schema_accepts_what_a_general_validator_accepts_and_nothing_else(schema: JsonObject, value: Any) -> None:
    assert (fault(schema, value) is None) == Draft202012Validator(schema).is_valid(value)


@given(trees())
def test_recursive_definitions_are_followed_as_deep_as_the_value_goes(value: Any) -> None:
    schema = {"$ref": "#/$defs/Tree", "$defs": {"Tree": TREE}}
    assert fault(schema, value) is None
    deeper = fault(schema, {"value": 1, "children": [value, {"value": 2, "children": [{"value": "x"}]}]})
    assert deeper == Fault("an integer", "x", ("children", 1, "children", 0, "value"))


@pytest.mark.parametrize(
    ("schema", "value", "place", "expected"),
    [
        ({"type": "integer"}, "x", "", "an integer"),
        ({"type": ["string", "null"]}, 1, "", "a string or null"),
        ({"type": "object", "required": ["a", "b"]}, {"b": 1}, "", "the required a"),
        ({"properties": {"a": {"enum": ["UP", "DOWN"]}}}, {"a": "JUMP"}, "a", 'one of "UP", "DOWN"'),
        ({"const": "go"}, "stop", "", '"go"'),
        ({"enum": []}, 1, "", "nothing: no value is allowed here"),
        ({"properties": {"a": {"items": {"maximum": 6}}}}, {"a": [1, 9]}, "a[1]", "a number not above 6"),
        ({"properties": {"a": True}, "additionalProperties": False}, {"b": 1}, "", "only known properties: a"),
        ({"additionalProperties": False}, {"b": 1}, "", "only known properties: none at all"),
        ({"minLength": 2}, "x", "", "a string of at least 2 characters"),
        ({"maxItems": 1}, [1, 2], "", "an array of at most 1 items"),
        ({"multipleOf": 0.5}, 0.7, "", "a multiple of 0.5"),
        ({"pattern": "^[a-h]$"}, "z", "", "a string that matches the pattern ^[a-h]$"),
        ({"uniqueItems": True}, [1, 1.0], "", "items that all differ"),
        ({"contains": {"type": "string"}}, [1], "", "1 to inf items of a certain kind"),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, "", "also b"),
        ({"not": {"type": "string"}}, "x", "", "a value that the schema does not exclude"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, 1, "", "a string or null"),
        ({"anyOf": [{"properties": {"a": {"type": "string"}}, "type": "object"}, {"type": "null"}]}, {"a": 1}, "a", "a string"),
        ({"oneOf": [{"type": "integer"}, {"minimum": 0}]}, 1, "", "only one of 2 forms, not 2"),
        ({"anyOf": []}, 1, "", "one of several forms"),
        ({"properties": {"a": False}}, {"a": 1}, "a", "nothing: no value is allowed here"),
        ({"patternProperties": {"^a": {"type": "integer"}}}, {"ab": "x"}, "ab", "an integer"),
        ({"properties": {"a": {"minimum": 1}}, "patternProperties": {"^a": True}}, {"a": 0}, "a", "a number not below 1"),
    ],
)
def test_a_fault_says_where_and_what_was_expected(schema: JsonObject, value: Any, place: str, expected: str) -> None:
    found = fault(schema, value)
    assert found is not None
    assert (found.place, found.expected) == (place, expected)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"minimum": 5, "exclusiveMinimum": True}, 5),  # draft 4
        ({"items": [{"type": "integer"}], "additionalItems": {"type": "string"}}, [1, "x"]),  # draft 7
        ({"pattern": "\\p{L}+"}, "a pattern that only other languages know is left to the environment"),
        ({"patternProperties": {"\\p{L}+": True}, "additionalProperties": False}, {"a": 1}),
        ({"multipleOf": 0.5}, 10**400),
        ({"multipleOf": 3}, 10**400 * 3),
        ({"$ref": "#/$defs/a~1b%25", "$defs": {"a/b%": {"type": "integer"}}}, 1),
    ],
)
def test_unusual_but_good_values_are_accepted(schema: JsonObject, value: Any) -> None:
    assert fault(schema, value) is None


def test_a_tuple_of_earlier_drafts_is_checked_as_one() -> None:
    schema = {"items": [{"type": "integer"}], "additionalItems": {"type": "string"}}
    assert fault(schema, [1, 2]) == Fault("a string", 2, (1,))


def test_numbers_that_are_none_satisfy_no_multiple() -> None:
    assert fault({"multipleOf": 2}, float("inf")) is not None


def test_a_schema_that_branches_without_end_on_one_value_runs_out_of_budget_quickly() -> None:
    branch = {"type": "array", "items": {"$ref": "#/$defs/T"}, "maxItems": 1}
    schema = {"$ref": "#/$defs/T", "$defs": {"T": {"anyOf": [{**branch, "minItems": 1}, branch, {"const": 0}]}}}
    value: Any = "x"
    for _ in range(60):
        value = [value]
    started = time.monotonic()
    with pytest.raises(TooMuchWork):
        fault(schema, value)
    assert time.monotonic() - started < 20


def test_definitions_that_double_at_every_level_run_out_of_budget() -> None:
    definitions: JsonObject = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)}
    definitions["d40"] = {"type": "integer"}
    with pytest.raises(TooMuchWork):
        fault({"$ref": "#/$defs/d0", "$defs": definitions}, 1)


def test_a_large_array_of_numbers_fits_into_the_budget() -> None:
    assert fault({"type": "array", "items": {"type": "integer"}}, list(range(200_000))) is None
