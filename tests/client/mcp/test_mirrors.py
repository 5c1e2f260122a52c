from __future__ import annotations

from typing import Any

import pytest

from openenv_client.mcp.mirrors import mirrored
from openenv_gateway.mapping.mirrors import mirrors_of

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "deep": {"type": "object", "properties": {"fast": {"type": "boolean", "x-mcp-header": "Fast"}}},
        "plain": {"type": "string"},
    },
}


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({}, {}),
        ({"plain": "x"}, {}),
        ({"region": "eu", "count": 0}, {"Mcp-Param-Region": "eu", "Mcp-Param-Count": "0"}),
        ({"region": None, "deep": None}, {}),
        ({"region": ["eu"], "deep": {"fast": False}}, {"Mcp-Param-Fast": "false"}),
        ({"deep": [1]}, {}),
    ],
)
def test_the_arguments_that_are_given_and_that_a_header_can_say_are_repeated(
    arguments: dict[str, Any], headers: dict[str, str]
) -> None:
    found = mirrored(SCHEMA, arguments)
    assert found == headers
    for mirror in mirrors_of(SCHEMA):  # the gateway, which checks them, agrees
        told = {name.lower(): text for name, text in found.items()}.get(mirror.header)
        value = mirror.value_in(arguments)
        assert value is None if told is None else mirror.agrees(value, told)


def test_a_schema_without_properties_repeats_nothing() -> None:
    assert mirrored({"type": "object"}, {"region": "eu"}) == {}
