"""Arguments that are repeated in HTTP headers, where a tool's schema wants that (`x-mcp-header`, MCP 2026-07-28). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from openenv_client.frames import JsonObject

ANNOTATION: Final = "x-mcp-header"


def mirrored(schema: JsonObject, arguments: Mapping[str, Any]) -> dict[str, str]:
    """Header -> text, for those of the arguments that are given. The text is not yet wrapped as headers want it."""
    return dict(_found(schema, arguments))


def _found(schema: JsonObject, value: Any) -> Iterator[tuple[str, str]]:
    properties = schema.get("properties")
    if not isinstance(properties, dict) or not isinstance(value, Mapping):
        return
    for name, inner in properties.items():
        if not isinstance(inner, dict) or value.get(name) is None:
            continue
        if isinstance(inner.get(ANNOTATION), str) and isinstance(value[name], (str, int, float)):
            yield f"Mcp-Param-{inner[ANNOTATION]}", _text(value[name])
        yield from _found(inner, value[name])


def _text(value: str | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
