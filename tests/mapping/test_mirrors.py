"""Which arguments are repeated in headers, and when both say the same, as the official package has it."""

from __future__ import annotations

from typing import Any

import pytest
from mcp.shared.inbound import find_invalid_x_mcp_header, x_mcp_header_map

from openenv_client.frames import JsonObject
from openenv_gateway.mapping.mirrors import Mirror, Misplaced, mirrors_of

TEXT: JsonObject = {"type": "string"}
REGION: JsonObject = {"type": "string", "x-mcp-header": "Region"}


def root(**properties: JsonObject) -> JsonObject:
    return {"type": "object", "properties": properties}


FINE: list[JsonObject] = [
    root(),
    root(a=TEXT),
    root(region=REGION, other=TEXT),
    root(a={"type": "integer", "x-mcp-header": "A"}, b={"type": "boolean", "x-mcp-header": "b!#"}),
    root(deep=root(region=REGION)),
    {"type": "object", "properties": {"x-mcp-header": TEXT}},
    root(a={"type": "string", "default": {"x-mcp-header": "no annotation"}}),
]
WRONG: list[JsonObject] = [
    {**root(), "x-mcp-header": "Root"},
    root(a={"type": "number", "x-mcp-header": "A"}),
    root(a={"type": ["string", "null"], "x-mcp-header": "A"}),
    root(a={"x-mcp-header": "A"}),
    root(a={"type": "string", "x-mcp-header": ""}),
    root(a={"type": "string", "x-mcp-header": "a b"}),
    root(a={"type": "string", "x-mcp-header": "a\r\nX: y"}),
    root(a={"type": "string", "x-mcp-header": "ключ"}),
    root(a={"type": "string", "x-mcp-header": 5}),
    root(a=REGION, b={"type": "string", "x-mcp-header": "REGION"}),
    root(a={"type": "array", "items": REGION}),
    root(a={"anyOf": [REGION, {"type": "null"}]}),
    {**root(a={"$ref": "#/$defs/R"}), "$defs": {"R": REGION}},
    {**root(), "if": root(a=REGION)},
    {**root(), "patternProperties": {"^a": REGION}},
    {**root(), "additionalProperties": REGION},
]


@pytest.mark.parametrize("schema", FINE)
def test_an_annotation_on_a_plain_property_names_a_header(schema: JsonObject) -> None:
    assert find_invalid_x_mcp_header(schema) is None
    expected = {path: f"mcp-param-{name}".lower() for path, name in x_mcp_header_map(schema).items()}
    assert {mirror.path: mirror.header for mirror in mirrors_of(schema)} == expected


@pytest.mark.parametrize("schema", WRONG)
def test_an_annotation_that_makes_clients_leave_out_the_tool_is_misplaced(schema: JsonObject) -> None:
    assert find_invalid_x_mcp_header(schema) is not None
    with pytest.raises(Misplaced):
        mirrors_of(schema)


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ({}, None),
        ({"a": 5}, None),
        ({"a": {"b": "x"}}, "x"),
        ({"a": {"b": None}}, None),
        ({"a": {"b": ["x"]}}, None),
        ({"a": {"b": False}}, False),
    ],
)
def test_an_argument_is_found_along_its_path(arguments: JsonObject, value: Any) -> None:
    assert Mirror(("a", "b"), "mcp-param-b").value_in(arguments) is value
