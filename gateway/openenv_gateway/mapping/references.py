"""One JSON Schema as served: its shape and bounds checked once, its local references followed. Pure, nothing is ever fetched.

What is read is JSON Schema 2020-12, with the list form of `items` of earlier drafts. A schema that passes `read_document` is
finite and well formed: whoever walks it later need not look again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any
from urllib.parse import unquote

from openenv_client.frames import JsonObject
from openenv_gateway.errors import UnusableSchema

Schema = JsonObject | bool

MAX_DEPTH = 64
"""Levels of schemas within schemas."""
MAX_SCHEMAS = 5_000
"""Schemas in one document, definitions included."""

TYPES = ("string", "integer", "number", "boolean", "object", "array", "null")

_ONE = frozenset({"additionalProperties", "additionalItems", "propertyNames", "contains", "not", "if", "then", "else"})
_LIST = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_MAP = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"})
_EXCLUSIVE = ("exclusiveMinimum", "exclusiveMaximum")  # true or false in draft 4
_ELSEWHERE = frozenset({"$dynamicRef", "$recursiveRef"})


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and (isinstance(value, int) or isfinite(value))


def _text(value: object) -> bool:
    return isinstance(value, str)


def _strings(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _names(value: object) -> bool:
    return isinstance(value, dict) and all(_strings(names) for names in value.values())


def _types(value: object) -> bool:
    names = value if isinstance(value, list) else [value]
    return bool(names) and all(isinstance(name, str) and name in TYPES for name in names)


def _count(value: object) -> bool:
    return isinstance(value, int | float) and _number(value) and value >= 0 and value % 1 == 0


_SHAPES: dict[str, tuple[Callable[[object], bool], str]] = {
    "type": (_types, f"one of {', '.join(TYPES)}, or a list of these"),
    "required": (_strings, "a list of names"),
    "enum": (lambda value: isinstance(value, list), "a list"),
    "dependentRequired": (_names, "lists of names"),
    **{name: (_text, "a text") for name in ("title", "description", "pattern", "$ref", "format")},
    **{name: (_number, "a number") for name in ("minimum", "maximum")},
    **{name: (lambda value: isinstance(value, bool) or _number(value), "a number") for name in _EXCLUSIVE},
    "multipleOf": (lambda value: isinstance(value, int | float) and _number(value) and value > 0, "a number above 0"),
    **{
        f"{end}{what}": (_count, "a whole number from 0 on")
        for end in ("min", "max")
        for what in ("Length", "Items", "Properties", "Contains")
    },
}


@dataclass(frozen=True, slots=True)
class Document:
    """A schema whose shape, size and references have been checked. `name` says in errors whose schema it is."""

    root: JsonObject
    name: str
    anchors: Mapping[str, Schema] = field(default_factory=dict)

    def follow(self, reference: str) -> Schema:
        """The schema that a local reference (`#`, `#/$defs/Move`, `#move` for an `$anchor`) names. Raises UnusableSchema for
        any other."""
        if reference[:1] == "#" and reference[1:] in self.anchors:
            return self.anchors[reference[1:]]
        if reference != "#" and not reference.startswith("#/"):
            raise self.unusable(f"it refers to {reference!r}; only references within the schema itself (#/…) are followed")
        place: Any = self.root
        for part in reference[1:].split("/")[1:]:
            place = self._enter(place, unquote(part).replace("~1", "/").replace("~0", "~"), reference)
        if not isinstance(place, dict | bool):
            raise self.unusable(f"its reference {reference!r} names no schema")
        return place

    def unusable(self, reason: str) -> UnusableSchema:
        """The error that says why this schema cannot be used."""
        return UnusableSchema(f"The schema of {self.name} cannot be used: {reason}")

    def _enter(self, place: Any, key: str, reference: str) -> Any:
        if isinstance(place, dict) and key in place:
            return place[key]
        if isinstance(place, list) and key.isdecimal() and int(key) < len(place):
            return place[int(key)]
        raise self.unusable(f"its reference {reference!r} leads nowhere")


def read_document(schema: object, name: str) -> Document:
    """The schema as a Document. Raises UnusableSchema if it is malformed, deeper than MAX_DEPTH, larger than MAX_SCHEMAS, or
    has a reference that is not local or leads nowhere."""
    if not isinstance(schema, dict):
        raise UnusableSchema(f"The schema of {name} cannot be used: it is {type(schema).__name__}, not an object")
    document = Document(schema, name)
    _check_json(document)
    document = Document(schema, name, dict(_anchors(schema)))
    waiting: list[tuple[object, str, int]] = [(schema, "#", 0)]
    seen: set[int] = set()
    while waiting:
        node, place, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise document.unusable(f"it is more than {MAX_DEPTH} levels deep at {place}")
        if isinstance(node, dict) and id(node) not in seen:
            seen.add(id(node))
            _check_shape(document, node, place)
            waiting += [(child, f"{place}/{key}", depth + 1) for key, child in _children(document, node, place)]
        elif not isinstance(node, bool | dict):
            raise document.unusable(f"{place} is {type(node).__name__}, not a schema")
        if len(seen) > MAX_SCHEMAS:
            raise document.unusable(f"it has more than {MAX_SCHEMAS} parts")
    return document


def positions(schema: JsonObject) -> Iterator[tuple[tuple[str, ...] | None, JsonObject]]:
    """Every schema within a schema that `read_document` has checked, references not followed, each with the names of the
    properties that lead to it from the root: None if anything but `properties` lies on the way."""
    waiting: list[tuple[tuple[str, ...] | None, object]] = [((), schema)]
    while waiting:
        path, node = waiting.pop()
        if isinstance(node, dict):
            yield path, node
            waiting += [(None, child) for keyword, child in _parts(node) if not keyword.startswith("properties/")]
            named = node.get("properties", {})
            waiting += [(None if path is None else (*path, name), child) for name, child in named.items()]


def _check_json(document: Document) -> None:
    try:
        json.dumps(document.root, ensure_ascii=False).encode()
    except (ValueError, TypeError, RecursionError) as error:
        raise document.unusable(f"it is not JSON, or is nested too deeply ({error})") from None


def _check_shape(document: Document, node: JsonObject, place: str) -> None:
    for keyword, (fits, wanted) in _SHAPES.items():
        if keyword in node and not fits(node[keyword]):
            raise document.unusable(f"{keyword} at {place} is not {wanted}")
    for keyword in _ELSEWHERE & node.keys():
        raise document.unusable(f"{keyword} at {place} is not supported; use $ref")


def _children(document: Document, node: JsonObject, place: str) -> Iterator[tuple[str, object]]:
    if "$ref" in node:  # what it names may lie where nobody would look for a schema
        yield "$ref", document.follow(node["$ref"])
    for keyword in _LIST & node.keys():
        if not isinstance(node[keyword], list):
            raise document.unusable(f"{keyword} at {place} is not a list")
    for keyword in _MAP & node.keys():
        if not isinstance(node[keyword], dict):
            raise document.unusable(f"{keyword} at {place} is not an object")
    yield from _parts(node)


def _parts(node: JsonObject) -> Iterator[tuple[str, object]]:
    """What stands where a schema has schemas within it, each with its place."""
    for keyword, value in node.items():
        if keyword in _LIST or keyword == "items" and isinstance(value, list):
            yield from ((f"{keyword}/{index}", child) for index, child in enumerate(value))
        elif keyword in _ONE or keyword == "items":
            yield keyword, value
        elif keyword in _MAP:
            yield from ((f"{keyword}/{key}", child) for key, child in value.items())


def _anchors(schema: JsonObject) -> Iterator[tuple[str, Schema]]:
    """What an `$anchor` names. Looked for in all of it, as what lies elsewhere than schemas is never referred to by name."""
    waiting: list[object] = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            if isinstance(node.get("$anchor"), str):
                yield node["$anchor"], node
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node
