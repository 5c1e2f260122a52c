"""The rules under which every host accepts a schema (see facts about hosts in the design), as a check for tests."""

from __future__ import annotations

import re
from collections.abc import Iterator

from openenv_client.frames import JsonObject

ALLOWED = {
    "string": {"minLength", "maxLength", "pattern", "enum"},
    "integer": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "enum"},
    "number": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "enum"},
    "boolean": {"enum"},
    "null": set(),
    "object": {"properties", "required"},
    "array": {"items", "minItems", "maxItems"},
}


def broken_rules(schema: JsonObject) -> list[str]:
    """Every rule that the schema breaks, each with its place; empty for one that every host accepts."""
    return [*_at_root(schema), *_at(schema, "#")]


def _at_root(schema: JsonObject) -> Iterator[str]:
    if schema.get("type") != "object":
        yield "#: the root is not of type object"
    if "properties" not in schema:
        yield "#: the root has no properties"


def _at(schema: object, place: str) -> Iterator[str]:
    if not isinstance(schema, dict) or not schema:
        yield f"{place}: {schema!r} is a boolean or empty schema"
        return
    known = {"type", "description", "default"}
    if "anyOf" in schema:
        known = {"anyOf", "description", "default"}
        for index, branch in enumerate(schema["anyOf"]):
            yield from _at(branch, f"{place}/anyOf/{index}")
    elif isinstance(schema.get("type"), str):
        known |= ALLOWED[schema["type"]]
    else:
        yield f"{place}: its type is {schema.get('type')!r}"
    for keyword in schema.keys() - known:
        yield f"{place}: {keyword} is not allowed here"
    if schema.get("type") == "object":
        yield from _at_object(schema, place)
    if schema.get("type") == "array":
        yield from _at(schema.get("items"), f"{place}/items")


def _at_object(schema: JsonObject, place: str) -> Iterator[str]:
    if not isinstance(schema.get("properties"), dict):
        yield f"{place}: an object without properties"
        return
    for name in schema.get("required", ()):
        if name not in schema["properties"]:
            yield f"{place}: {name} is required and not declared"
    for name, child in schema["properties"].items():
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
            yield f"{place}: the property name {name!r}"
        if not (isinstance(child, dict) and isinstance(child.get("description"), str) and child["description"].strip()):
            yield f"{place}: {name} has no description"
        yield from _at(child, f"{place}/properties/{name}")
