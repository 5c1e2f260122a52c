"""A schema as a flat list of alternatives: every `$ref`, `allOf`, `anyOf`, `oneOf`, type list and `const` at the top of it
resolved, so that each alternative has one type and keywords of that type only. Pure.

This is the common ground of what is advertised, how arguments are coerced, and which examples are given; the schema itself
remains what decides. The alternatives accept at least what the schema accepts: `not`, `if` and the like are left out, and of
`oneOf` that only one may match.

A schema without `type`, and without one around it, is read by its keywords: with `properties` it is an object, with `items` an
array; only one with no keyword of any type stands for every type.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from openenv_client.frames import JsonObject
from openenv_gateway.mapping.equality import identity, type_of
from openenv_gateway.mapping.references import TYPES, Document, Schema

MAX_ALTERNATIVES = 200
"""Alternatives of one schema. Real unions have a dozen; products of unions explode."""

_OF_TYPE = {
    "string": ("minLength", "maxLength", "pattern", "format"),
    "integer": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "object": ("properties", "required", "additionalProperties", "patternProperties", "minProperties", "maxProperties"),
    "array": ("items", "prefixItems", "minItems", "maxItems", "uniqueItems"),
    "boolean": (),
    "null": (),
}
WORDS = ("description", "title", "default", "examples")
"""Keywords that say something about a value and never refuse one."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """One way to satisfy a schema. `keywords` has no composition and exactly one `type` (a name); `references` are the
    `$ref`s that were followed to get here; `declared` says whether a schema names the type, or it is only one of all."""

    keywords: JsonObject
    references: tuple[str, ...] = ()
    declared: bool = True

    @property
    def type(self) -> str:
        return str(self.keywords["type"])

    @property
    def is_told(self) -> bool:
        """Whether the type is declared or at least has keywords of its own."""
        return self.declared or any(keyword in self.keywords for keyword in _OF_TYPE[self.type])


class Alternatives:
    """The alternatives of every schema within one document, worked out once each. Raises UnusableSchema where a schema refers
    to itself without end or has more than MAX_ALTERNATIVES."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._known: dict[int, list[Alternative]] = {}
        self._pinned: list[Schema] = []  # `_known` goes by identity, so what it knows must live as long
        self._open: set[int] = set()

    def of(self, schema: Schema) -> list[Alternative]:
        """The alternatives of `schema`, which is a part of the document. Empty if nothing satisfies it."""
        found = self._all(schema)
        told = [one for one in found if one.is_told]
        return told if any(not one.declared for one in told) else found

    def _all(self, schema: Schema) -> list[Alternative]:
        """As `of`, but what declares no type is of every type: so it may yet be merged with what does."""
        if isinstance(schema, bool):
            schema = _ANYTHING if schema else _NOTHING
        if id(schema) not in self._known:
            if id(schema) in self._open:
                raise self._document.unusable("a part of it refers to itself without end")
            self._open.add(id(schema))
            self._known[id(schema)] = self._flat(schema)
            self._pinned.append(schema)
            self._open.discard(id(schema))
        return self._known[id(schema)]

    def _flat(self, schema: JsonObject) -> list[Alternative]:
        found = _own(schema)
        if "$ref" in schema:
            reference = schema["$ref"]
            target = self._all(self._document.follow(reference))
            found = self._product(found, [replace(one, references=(reference, *one.references)) for one in target])
        for part in schema.get("allOf", ()):
            found = self._product(found, self._all(part))
        for union in ("anyOf", "oneOf"):
            if union in schema:
                of = self._all if any(one.is_told for one in found) else self.of
                found = self._product(found, [one for branch in schema[union] for one in of(branch)])
        return found

    def _product(self, first: list[Alternative], second: list[Alternative]) -> list[Alternative]:
        pairs = [both for other in second for one in first if (both := _both(one, other)) is not None]
        if len(pairs) > MAX_ALTERNATIVES:
            raise self._document.unusable(f"a part of it has more than {MAX_ALTERNATIVES} alternatives")
        return pairs


_ANYTHING: JsonObject = {}
_NOTHING: JsonObject = {"enum": []}


def _own(schema: JsonObject) -> list[Alternative]:
    """What a schema says by itself, once per type that it allows, with the keywords of that type."""
    own = dict(schema)
    if "const" in schema:
        own["enum"] = _common_values(own.get("enum"), [schema["const"]])
    if isinstance(schema.get("items"), list):  # how tuples were written before 2020-12
        own["prefixItems"], own["items"] = schema["items"], schema.get("additionalItems", True)
    words = () if "anyOf" in schema or "oneOf" in schema else WORDS  # those on a union are not those on each of its branches
    declared = "type" in own or "enum" in own
    found = []
    for name in _types(own):
        kept = ("enum", *words, *_OF_TYPE[name])
        keywords = {key: value for key, value in own.items() if key in kept}
        if _narrow_enum(keywords, name):
            found.append(Alternative({"type": name, **keywords}, declared=declared))
    return found


def _types(schema: JsonObject) -> list[str]:
    if "type" in schema:
        names = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
        return [name for name in dict.fromkeys(names) if not (name == "integer" and "number" in names)]
    if "enum" in schema:
        return list(dict.fromkeys(type_of(value) for value in schema["enum"]))
    return [name for name in TYPES if name != "integer"]


def _narrow_enum(keywords: JsonObject, name: str) -> bool:
    """Leave only values of the type in the enum, if there is one. False if none is left."""
    if "enum" not in keywords:
        return True
    wanted = ("integer", "number") if name == "number" else (name,)
    keywords["enum"] = [value for value in keywords["enum"] if type_of(value) in wanted]
    return bool(keywords["enum"])


def _both(first: Alternative, second: Alternative) -> Alternative | None:
    """What satisfies both, or None if nothing can. The first one's words win over the second's."""
    names = {first.type, second.type}
    if len(names) > 1 and names != {"integer", "number"}:
        return None
    merged = {**second.keywords, **first.keywords}
    merged["type"] = "integer" if "integer" in names else first.type
    for key in first.keywords.keys() & second.keywords.keys() & _MERGES.keys():
        merged[key] = _MERGES[key](first.keywords[key], second.keywords[key])
    if not _narrow_enum(merged, merged["type"]):
        return None
    return Alternative(merged, (*first.references, *second.references), first.declared or second.declared)


def _common_values(first: list[Any] | None, second: list[Any]) -> list[Any]:
    if first is None:
        return second
    wanted = {identity(value) for value in second}
    return [value for value in first if identity(value) in wanted]


def _properties(first: JsonObject, second: JsonObject) -> JsonObject:
    shared = {name: {"allOf": [first[name], second[name]]} for name in first if name in second}
    return {**second, **first, **shared}


_MERGES: dict[str, Callable[[Any, Any], Any]] = {
    "enum": _common_values,
    "properties": _properties,
    "patternProperties": lambda first, second: {**second, **first},
    "required": lambda first, second: list(dict.fromkeys([*first, *second])),
    "additionalProperties": lambda first, second: second if first is True else first,
    "items": lambda first, second: {"allOf": [first, second]},
    "uniqueItems": lambda first, second: first or second,
    **{key: max for key in ("minLength", "minItems", "minProperties", "minimum", "exclusiveMinimum")},
    **{key: min for key in ("maxLength", "maxItems", "maxProperties", "maximum", "exclusiveMaximum")},
}
