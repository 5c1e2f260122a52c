"""openenv_gateway_schemas: what the package hands out."""

from __future__ import annotations

import json

import pytest

import openenv_gateway_schemas as schemas

PUBLISHED = {"error_data", "tool_result", "trajectory_step", "ws_frame"}


def test_every_published_contract_is_there_in_a_fixed_order() -> None:
    assert set(schemas.names()) >= PUBLISHED
    assert list(schemas.names()) == sorted(schemas.names())


@pytest.mark.parametrize("name", schemas.names())
def test_raw_bytes_and_the_parsed_schema_are_the_same_document(name: str) -> None:
    assert json.loads(schemas.raw(name)) == schemas.load(name)


def test_a_loaded_schema_is_the_callers_own_copy() -> None:
    schemas.load("error_data").clear()
    assert schemas.load("error_data")["title"] == "Error data"


@pytest.mark.parametrize("name", ["nothing", "../loader", "ws_frame.schema.json"])
def test_an_unknown_name_is_a_key_error_that_lists_the_known_ones(name: str) -> None:
    with pytest.raises(KeyError, match="error_data, tool_result"):
        schemas.raw(name) if name == "nothing" else schemas.load(name)
