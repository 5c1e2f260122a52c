"""The count of what a check may cost is never too low where it matters, and ordinary schemas and values stay cheap."""

from __future__ import annotations

from typing import Any

import pytest
from testkit import catalog
from testkit.json_schemas import TREE

from openenv_client.frames import JsonObject
from openenv_gateway.errors import UnusableSchema
from openenv_gateway.mapping.faults import TooMuchWork
from openenv_gateway.mapping.references import read_document
from openenv_gateway.mapping.work import MAX_LEVELS, MAX_NESTED, Work, measured


def weights(schema: JsonObject, levels: int) -> list[int]:
    work = Work(read_document(schema, "a test"))
    return [work.weight(schema, level) for level in range(levels)]


def refused(schema: JsonObject) -> str:
    with pytest.raises(UnusableSchema) as caught:
        weights(schema, 1)
    return str(caught.value)


@pytest.mark.parametrize(
    ("value", "levels"),
    [
        (1, [1]),
        ("x" * 160, [11]),
        ({}, [1]),
        ({"a": 1, "b": [2, 3]}, [1, 2, 2]),
        ({"k" * 160: None}, [11, 1]),
        ({"a": "x" * 160, "b": 1}, [1, 12]),
        ({"a": {"b": "x" * 16}}, [1, 1, 2]),
        ([[], {}, [[]]], [1, 3, 1]),
    ],
)
def test_what_lies_on_each_level_of_a_value_is_counted(value: Any, levels: list[int]) -> None:
    assert measured(value) == levels


def test_a_value_that_is_too_deep_is_not_measured_to_its_end() -> None:
    value: Any = 1
    for _ in range(MAX_LEVELS - 1):
        value = [value]
    assert measured(value) == [1] * MAX_LEVELS
    with pytest.raises(TooMuchWork):
        measured([value])


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        ({"type": "string"}, [1, 1, 1]),
        ({"properties": {"a": {"items": {"type": "integer"}}, "b": {"minimum": 1}}}, [1, 1, 1]),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, [3, 1, 1]),
        ({"items": {"allOf": [{"minimum": 1}, {"maximum": 2}]}, "contains": {"const": 1}}, [1, 4, 1]),
        ({"items": [{"not": {"type": "null"}}, True], "additionalItems": {"type": "integer"}}, [1, 2, 1]),
        ({"patternProperties": {"^a": {"minimum": 1}}, "additionalProperties": {"if": True, "then": {}}}, [51, 3, 1]),
        ({"propertyNames": {"maxLength": 3}, "dependentSchemas": {"a": {"minProperties": 2}}}, [2, 1, 1]),
        ({"pattern": "a+"}, [51, 1, 1]),
        ({"enum": ["x" * 1600]}, [101, 1, 1]),
        ({"required": [f"n{n}" for n in range(160)]}, [11, 1, 1]),
    ],
)
def test_every_schema_that_looks_at_a_part_counts(schema: JsonObject, found: list[int]) -> None:
    assert weights(schema, 3) == found


def test_a_recursive_schema_that_looks_once_at_each_part_costs_the_same_on_every_level() -> None:
    schema = {"$ref": "#/$defs/Tree", "$defs": {"Tree": TREE}}
    assert max(weights(schema, 50)) == 2
    anything = {"anyOf": [{"type": "string"}, {"items": {"$ref": "#"}}, {"additionalProperties": {"$ref": "#"}}]}
    assert max(weights(anything, 50)) == 5


def test_a_recursive_union_costs_twice_as_much_on_every_level() -> None:
    found = weights({"anyOf": [{"items": {"$ref": "#"}}, {"items": {"$ref": "#"}}]}, 20)
    assert all(deeper == 2 * outer for outer, deeper in zip(found[1:], found[2:], strict=False))


@pytest.mark.parametrize("keyword", ["not", "if", "then", "else"])
def test_a_schema_that_refers_to_itself_without_going_deeper_is_refused(keyword: str) -> None:
    assert "refers to itself without end" in refused({keyword: {"$ref": "#"}})
    assert "refers to itself without end" in refused({"allOf": [{"dependentSchemas": {"a": {"$ref": "#"}}}]})


def test_references_that_are_nested_too_many_times_are_refused() -> None:
    chain = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(MAX_NESTED)}
    assert "too many references" in refused({"$ref": "#/$defs/d0", "$defs": {**chain, f"d{MAX_NESTED}": {"minimum": 1}}})


@pytest.mark.parametrize("env", catalog.described())
def test_the_actions_of_recorded_environments_are_cheap(env: str) -> None:
    assert max(weights(catalog.description(env).action, 5)) < 500
