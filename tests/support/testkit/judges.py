"""Outside judges of one CallToolResult: the official models of every revision that has such results, and our own schemas."""

from __future__ import annotations

from typing import Any

import mcp_types
import orjson
from jsonschema import Draft202012Validator
from mcp_types.methods import validate_server_result

import openenv_gateway_schemas as schemas
from openenv_client.frames import JsonObject

REVISIONS = ("2025-06-18", "2025-11-25", "2026-07-28")

_RESULT = Draft202012Validator(schemas.load("tool_result"))
_ERROR = Draft202012Validator(schemas.load("error_data"))


def judged(result: JsonObject) -> JsonObject:
    """The result as a client reads it from the wire. Raises, in the judge's words, when any of them refuses it."""
    wire: JsonObject = orjson.loads(orjson.dumps(result))
    for revision in REVISIONS:
        validate_server_result("tools/call", revision, {**wire, "resultType": "complete"})
    mcp_types.CallToolResult.model_validate(wire)
    assert wire["content"], "a result without content shows nothing to hosts that read text only"
    assert all(block["text"] for block in wire["content"] if block["type"] == "text"), "an empty text block"
    if wire["isError"]:
        assert "structuredContent" not in wire, "hosts would hold a failure's structuredContent against the outputSchema"
        if "openenv/error" in wire["_meta"]:
            _ERROR.validate(wire["_meta"]["openenv/error"])
    else:
        _RESULT.validate(wire["structuredContent"])
        _check_pointers(wire["structuredContent"], wire["content"])
    return wire


def _check_pointers(value: Any, content: list[JsonObject]) -> None:
    if isinstance(value, list):
        for item in value:
            _check_pointers(item, content)
    if isinstance(value, dict):
        if isinstance(value.get("$content"), int):
            assert content[value["$content"]]["type"] in ("image", "audio"), "a pointer to a block that is no picture or sound"
        for item in value.values():
            _check_pointers(item, content)
