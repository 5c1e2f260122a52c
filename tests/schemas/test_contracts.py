"""The schemas themselves: valid, described, true to their examples, and false to what breaks the contract."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import openenv_gateway_schemas as schemas

Schema = dict[str, Any]


def subschemas(schema: Schema, path: str = "#") -> Iterator[tuple[str, Schema]]:
    """Every schema in a schema, with its place."""
    yield path, schema
    for keyword in ("properties", "$defs"):
        for name, inner in schema.get(keyword, {}).items():
            if isinstance(inner, dict):
                yield from subschemas(inner, f"{path}/{keyword}/{name}")
    for keyword in ("items", "additionalProperties"):
        if isinstance(schema.get(keyword), dict):
            yield from subschemas(schema[keyword], f"{path}/{keyword}")


def validator(name: str, pointer: str = "#") -> Draft202012Validator:
    """The validator of one schema, or of one place in it."""
    schema = schemas.load(name)
    if pointer == "#":
        return Draft202012Validator(schema)
    return Draft202012Validator({"$ref": pointer, "$defs": schema["$defs"]})


@pytest.mark.parametrize("name", schemas.names())
def test_each_is_a_valid_2020_12_schema_with_its_own_stable_id(name: str) -> None:
    schema = schemas.load(name)
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$id"] == f"urn:openenv-gateway:schemas:{name}"


@pytest.mark.parametrize("name", schemas.names())
def test_the_whole_and_every_member_are_described(name: str) -> None:
    schema = schemas.load(name)
    silent = [path for path, inner in subschemas(schema) if not inner.keys() & {"description", "$ref"} and "/items" not in path]
    assert schema["title"] and [path for path in silent if "/oneOf" not in path] == []


@pytest.mark.parametrize("name", schemas.names())
def test_every_example_is_valid_where_it_stands(name: str) -> None:
    schema = schemas.load(name)
    assert schema["examples"]
    for path, inner in subschemas(schema):
        for example in inner.get("examples", []):
            validator(name, path).validate(example)


REFUSED: list[tuple[str, str, Any]] = [
    ("ws_frame", "a further top-level member", {"type": "state", "id": 7}),
    ("ws_frame", "a step without an action", {"type": "step"}),
    ("ws_frame", "an unknown kind", {"type": "bogus"}),
    ("ws_frame", "no kind", {"data": {}}),
    ("ws_frame", "no object", []),
    ("ws_frame", "a reward in words", {"type": "observation", "data": {"observation": {}, "reward": "1", "done": False}}),
    ("ws_frame", "no done", {"type": "observation", "data": {"observation": {}, "reward": None}}),
    ("ws_frame", "a list as observation", {"type": "observation", "data": {"observation": [], "reward": None, "done": False}}),
    ("ws_frame", "an error without a code", {"type": "error", "data": {"message": "99"}}),
    ("tool_result", "neither observation nor state", {"reward": 1.0, "done": False}),
    ("tool_result", "both", {"observation": {}, "done": False, "state": {}}),
    ("tool_result", "an observation without done", {"observation": {}}),
    ("tool_result", "a misspelt member", {"state": {}, "sesion_id": "Zr8r2Tt3mJ0mYkq1xkV8Og"}),
    ("tool_result", "a handle that can be guessed", {"state": {}, "session_id": "7"}),
    ("tool_result", "a late outcome that says nothing", {"state": {}, "late": {"tool": "step"}}),
    ("error_data", "no next step", {"code": "TIMEOUT", "retryable": True, "cause": "late"}),
    ("error_data", "a code in words", {"code": "too late", "retryable": True, "cause": "late", "next_step": "wait"}),
    ("error_data", "a wait in the past", {"code": "X", "retryable": True, "cause": "a", "next_step": "b", "retry_after_s": -1}),
]


@pytest.mark.parametrize(("name", "instance"), [pytest.param(n, i, id=f"{n}: {why}") for n, why, i in REFUSED])
def test_what_breaks_a_contract_is_refused(name: str, instance: Any) -> None:
    assert not validator(name).is_valid(instance)


RECORD = schemas.load("trajectory_step")["examples"][0]


@pytest.mark.parametrize(
    "change",
    [
        {"time": "yesterday"},
        {"time": "2026-11-29T16:20:11"},
        {"step": -1},
        {"kind": "close"},
        {"reward": "1"},
        {"observation": None},
        {"state": {}},
        {"kind": "state"},
        {"error": {"code": "TIMEOUT", "message": "late"}},
        {"duration_s": -0.1},
        {"version": 2},
        {"lane_id": "lane-7"},
    ],
    ids=str,
)
def test_a_record_that_a_trainer_could_misread_is_refused(change: dict[str, Any]) -> None:
    assert validator("trajectory_step").is_valid(RECORD)
    assert not validator("trajectory_step").is_valid({**RECORD, **change})


@pytest.mark.parametrize("member", schemas.load("trajectory_step")["required"])
def test_a_record_lacks_none_of_its_required_members(member: str) -> None:
    assert not validator("trajectory_step").is_valid({key: value for key, value in RECORD.items() if key != member})
