"""What the library found, in words: the fault that helps most, at the place where it is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema_rs import Draft202012Validator
from testkit.json_schemas import VALUES, any_schemas

from openenv_client.frames import JsonObject
from openenv_gateway.mapping.faults import Fault
from openenv_gateway.mapping.references import read_document
from openenv_gateway.mapping.standalone import Rewriter, compiled
from openenv_gateway.mapping.telling import first_fault


def told(schema: JsonObject, value: Any, *hidden: str) -> Fault:
    return first_fault(list(Draft202012Validator(schema).iter_errors(value)), schema, value, hidden)


def test_all_that_is_missing_is_named_at_once_before_anything_deeper() -> None:
    schema = {"properties": {"a": {"type": "string"}}, "required": ["a", "b", "c"], "additionalProperties": False}
    assert told(schema, {"a": 1}) == Fault("the required b, c", {"a": 1})
    assert told(schema, {"x": 1}).expected == "the required a, b, c"


def test_all_that_is_unknown_is_named_with_what_is_known_but_not_what_is_hidden() -> None:
    schema = {"properties": {"a": True, "metadata": True}, "additionalProperties": False}
    assert told(schema, {"b": 1}, "metadata") == Fault("only known properties: a", "b")
    assert told(schema, {"b": 1, "c": 2}) == Fault("only known properties: a, metadata", ["b", "c"])
    nested = {"properties": {"x": schema}}
    assert told(nested, {"x": {"b": 1}}, "metadata") == Fault("only known properties: a, metadata", "b", ("x",))
    assert told({"anyOf": [schema, {"type": "null"}]}, {"b": 1}, "metadata").expected == "only known properties: a or null"


def test_an_object_that_may_have_no_properties_says_so() -> None:
    assert told({"additionalProperties": False}, {"a": 1, "b": 2}) == Fault("only known properties: none at all", ["a", "b"])
    odd = {"properties": {"additionalProperties": False}}
    assert told(odd, {"additionalProperties": 1}) == Fault("nothing: no value is allowed here", 1, ("additionalProperties",))


@pytest.mark.parametrize("name", ["7", "007", "+7", "0", "00"])
def test_a_property_named_by_digits_is_found_again(name: str) -> None:
    schema = {"properties": {name: {"type": "string"}}}
    assert told(schema, {name: 1}) == Fault("a string", 1, (name,))


def test_a_name_that_does_not_fit_is_what_was_found() -> None:
    schema = {"properties": {"a": {"propertyNames": {"anyOf": [{"maxLength": 1}, {"const": "xyz"}]}}}}
    expected = 'a string of at most 1 characters or "xyz"'
    assert told(schema, {"a": {"ab": 1}}) == Fault(expected, "ab", ("a",))
    assert told({"propertyNames": False}, {"a": 1}).expected == "nothing: no value is allowed here"


def test_a_union_tells_of_its_forms_or_of_the_one_that_came_closest() -> None:
    move = {"type": "object", "properties": {"at": {"type": "integer"}}, "required": ["at"]}
    assert told({"oneOf": [move, {"type": "string"}]}, 1) == Fault("an object or a string", 1)
    assert told({"oneOf": [move, {"type": "string"}]}, {"at": "x"}) == Fault("an integer", "x", ("at",))
    both = {"anyOf": [move, {**move, "required": ["to"], "properties": {"at": {"type": "null"}}}]}
    assert told(both, {"at": "x", "to": 1}).expected == "one of several forms"
    assert told({"items": {"anyOf": [{"type": "null"}, {"minimum": 5}]}}, [1]) == Fault("null or a number not below 5", 1, (0,))


def test_unions_within_unions_are_followed() -> None:
    inner = {"anyOf": [{"type": "integer"}, {"type": "boolean"}]}
    schema = {"anyOf": [{"type": "null"}, {"type": "object", "properties": {"a": inner}}]}
    assert told(schema, {"a": "x"}) == Fault("an integer or a boolean", "x", ("a",))


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"minContains": 2, "contains": {"type": "null"}}, [None], "at least 2 items of a certain kind"),
        ({"maxContains": 1, "contains": {"type": "null"}}, [None] * 2, "at least 1 items of a certain kind, and at most 1"),
        ({"maxLength": 1_000_000}, "x" * 1_000_001, "a string of at most 1000000 characters"),
        ({"minLength": 2.0}, "x", "a string of at least 2 characters"),
        ({"exclusiveMinimum": 10**30}, 1, f"a number above {10**30}"),
        ({"maxProperties": 1}, {"a": 1, "b": 1}, "an object of at most 1 properties"),
        ({"if": {"type": "integer"}, "then": {"multipleOf": 2}}, 1, "a multiple of 2"),
        ({"dependentSchemas": {"a": {"required": ["b"]}}}, {"a": 1}, "the required b"),
        ({"format": "date", "unevaluatedProperties": False}, {"a": 1}, "a value that the schema does not exclude"),
    ],
)
def test_every_keyword_has_its_words(schema: JsonObject, value: Any, expected: str) -> None:
    assert told(schema, value).expected == expected


@settings(max_examples=500, suppress_health_check=[HealthCheck.too_slow])
@given(any_schemas(), VALUES | st.dictionaries(st.sampled_from(["7", "007", "move"]), VALUES, max_size=3))
def test_whatever_is_refused_is_told_where_it_is(schema: JsonObject, value: Any) -> None:
    standalone, _ = Rewriter(read_document(schema, "a test")).standalone(schema)
    errors = list(compiled(standalone).iter_errors(value))
    if errors:
        place: Any = value
        fault = first_fault(errors, standalone, value)
        for key in fault.path:
            place = place[key]
        assert fault.expected
