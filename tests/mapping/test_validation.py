"""The check agrees with a general validator on everything, and never hangs."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from jsonschema import Draft202012Validator
from testkit.json_schemas import TREE, VALUES, any_schemas, trees

from openenv_client.frames import JsonObject
from openenv_gateway.errors import UnusableSchema
from openenv_gateway.mapping.faults import Budget, Fault, TooMuchWork
from openenv_gateway.mapping.references import Document, read_document
from openenv_gateway.mapping.validation import Validator


def fault(schema: JsonObject, value: Any) -> Fault | None:
    document = read_document(schema, "a test")
    return Validator(document).check(document.root)(value, Budget())


@settings(max_examples=1000, suppress_health_check=[HealthCheck.too_slow])
@given(any_schemas(), VALUES)
def test_every_schema_accepts_what_a_general_validator_accepts_and_nothing_else(schema: JsonObject, value: Any) -> None:
    assert (fault(schema, value) is None) == Draft202012Validator(schema).is_valid(value)


BIG = 10**30
EDGES: list[tuple[JsonObject, list[Any]]] = [
    ({"type": "integer"}, [1.0, -0.0, 1.5, 1e300, BIG, True, "1"]),
    ({"type": "number"}, [1, 1.0, BIG, False, None]),
    ({"const": 1}, [1, 1.0, True, "1", [1]]),
    ({"enum": [0, False, "", [1], {"a": 1.0}]}, [0, 0.0, False, "", None, [1.0], [True], {"a": 1}, {"a": 1, "b": 2}]),
    ({"multipleOf": 0.5}, [0.3, 0.5, 1e300, BIG, -1.5, 0]),
    ({"multipleOf": 0.01}, [0.02, 0.75, 4.351]),
    ({"multipleOf": 3}, [BIG * 3, BIG * 3 + 1, 9.0, 9.5]),
    ({"minimum": BIG}, [BIG, BIG - 1, 1e30, 1e29]),
    ({"maximum": 2**53}, [2**53, 2**53 + 1, 2.0**53]),
    ({"exclusiveMaximum": -5}, [-5, -5.0, -5.000001]),
    ({"minLength": 2, "maxLength": 2}, ["é", "éé", "😀", "😀😀", "e\u0301", ""]),
    ({"uniqueItems": True}, [[1, 1.0], [1, True], [0, False], [[1], [1.0]], [[1], [True]], [BIG, BIG + 1]]),
    ({"uniqueItems": True}, [[{"a": 1}, {"a": 1.0}], [{"a": 1}, {"a": True}]]),
    ({"uniqueItems": True}, [[*range(30), 7.0], [*range(30), True], [*map(str, range(30)), 7]]),
    ({"pattern": "^\\d+$"}, ["12", "12a", "", 12]),
    ({"minItems": 1.0, "maxProperties": 1.0}, [[], [1], {"a": 1, "b": 2}]),
]


@pytest.mark.parametrize(("schema", "value"), [(schema, value) for schema, values in EDGES for value in values])
def test_at_the_edges_of_numbers_texts_and_equality_it_agrees_too(schema: JsonObject, value: Any) -> None:
    assert (fault(schema, value) is None) == Draft202012Validator(schema).is_valid(value)


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(any_schemas(), VALUES)
def test_who_need_not_know_why_gets_the_same_answer(schema: JsonObject, value: Any) -> None:
    document = read_document(schema, "a test")
    check = Validator(document).check(document.root)
    assert check.accepts(value, Budget()) == (check(value, Budget()) is None)


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
        ({"contains": {"type": "string"}}, [1], "", "at least 1 items of a certain kind"),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, "", "also b"),
        ({"not": {"type": "string"}}, "x", "", "a value that the schema does not exclude"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, 1, "", "a string or null"),
        ({"anyOf": [{"properties": {"a": {"type": "string"}}, "type": "object"}, {"type": "null"}]}, {"a": 1}, "a", "a string"),
        ({"oneOf": [{"type": "integer"}, {"minimum": 0}]}, 1, "", "only one of 2 forms, not 2"),
        ({"anyOf": []}, 1, "", "nothing: no value is allowed here"),
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


def test_decimal_steps_are_counted_as_people_count_them() -> None:
    """`jsonschema` divides binary fractions here and finds that 0.3 is no multiple of 0.1."""
    assert fault({"multipleOf": 0.01}, 4.35) is None
    assert fault({"multipleOf": 0.1}, 0.3) is None
    assert fault({"multipleOf": 0.1}, 0.35) is not None


@pytest.mark.parametrize("value", ["\ud800", {"\ud800": 1}])
def test_half_a_character_is_refused_where_the_schema_looks_at_it(value: Any) -> None:
    schema = {"minLength": 1, "properties": {"a": True}, "additionalProperties": False}
    found = fault(schema, value)
    assert found is not None
    assert found.expected.startswith("only text of whole Unicode characters")
    assert not Validator(read_document(schema, "a test")).check(schema).accepts(value, Budget())


def test_parts_of_a_document_and_what_is_built_from_them_are_checked_with_its_definitions() -> None:
    definitions = {"T": {"$ref": "#/$defs/U"}, "U": {"minimum": 1}}
    document = read_document({"properties": {"a": {"$ref": "#/$defs/T"}}, "$defs": definitions}, "x")
    validator = Validator(document)
    part = document.root["properties"]["a"]
    assert validator.check(part) is validator.check(part)
    assert validator.check(part)(0, Budget()) == Fault("a number not below 1", 0)
    assert validator.check({"items": {"allOf": [part, True]}})([0], Budget()) == Fault("a number not below 1", 0, (0,))
    assert validator.check(True)(0, Budget()) is None
    assert validator.check(False)(0, Budget()) == Fault("nothing: no value is allowed here", 0)


@pytest.mark.parametrize("number", [10**4000, 1e300, 5e-324, 1e-9, -0.0])
@pytest.mark.parametrize("keyword", ["minimum", "exclusiveMaximum", "const"])
def test_numbers_of_every_size_are_taken(keyword: str, number: float) -> None:
    assert fault({keyword: number}, number) is None or keyword == "exclusiveMaximum"
    assert fault({"items": {"multipleOf": abs(number) or 1}}, [0]) is None


def test_a_schema_that_the_library_would_refuse_after_all_is_named_unusable() -> None:
    document = Document({"const": "\ud800"}, "a test")  # `read_document` lets no such thing pass
    with pytest.raises(UnusableSchema, match="The schema of a test cannot be used: the validator does not take it"):
        Validator(document).check(document.root)(1, Budget())


def test_a_first_use_pays_for_compiling() -> None:
    check = Validator(read_document({}, "x")).check({"allOf": [{"minimum": 1}] * 50})
    with pytest.raises(TooMuchWork):
        check(1, Budget(1000))
    check(1, Budget(2000))
    check(1, Budget(100))


def test_an_error_that_would_take_long_to_tell_is_not_told_in_detail() -> None:
    branch = {"type": "array", "items": {"$ref": "#"}, "maxItems": 1}
    value: Any = "x"
    for _ in range(15):
        value = [value]
    started = time.process_time()
    found = fault({"anyOf": [{**branch, "minItems": 1}, branch, {"const": 0}]}, value)
    assert found is not None
    assert found.expected.startswith("what the schema describes (too large")
    assert time.process_time() - started < 5


def test_a_pattern_is_never_slow() -> None:
    started = time.process_time()
    for source in ("^(a+)+$", "(a|a)*b", "(a*)*b", "^(a|aa)+$", "(x+x+)+y"):
        assert fault({"pattern": source}, "a" * 100_000 + "!") is not None
    with pytest.raises(TooMuchWork):
        fault({"pattern": "^(a+)+$"}, "a" * 10_000_000)
    assert time.process_time() - started < 5


def test_a_tuple_of_earlier_drafts_is_checked_as_one() -> None:
    schema = {"items": [{"type": "integer"}], "additionalItems": {"type": "string"}}
    assert fault(schema, [1, 2]) == Fault("a string", 2, (1,))


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
def test_numbers_that_json_does_not_have_are_no_numbers(value: float) -> None:
    assert fault({"type": "number", "multipleOf": 2}, value) is not None


def test_a_schema_that_branches_without_end_on_one_value_runs_out_of_budget_quickly() -> None:
    branch = {"type": "array", "items": {"$ref": "#/$defs/T"}, "maxItems": 1}
    schema = {"$ref": "#/$defs/T", "$defs": {"T": {"anyOf": [{**branch, "minItems": 1}, branch, {"const": 0}]}}}
    value: Any = "x"
    for _ in range(60):
        value = [value]
    started = time.process_time()
    with pytest.raises(TooMuchWork):
        fault(schema, value)
    assert time.process_time() - started < 20


def test_definitions_that_double_at_every_level_run_out_of_budget() -> None:
    definitions: JsonObject = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)}
    definitions["d40"] = {"type": "integer"}
    with pytest.raises(TooMuchWork):
        fault({"$ref": "#/$defs/d0", "$defs": definitions}, 1)


def test_a_large_array_of_numbers_fits_into_the_budget() -> None:
    assert fault({"type": "array", "items": {"type": "integer"}}, list(range(200_000))) is None
