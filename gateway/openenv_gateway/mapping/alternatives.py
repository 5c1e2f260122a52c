"""A schema as a flat list of alternatives: every `$ref`, `allOf`, `anyOf`, `oneOf`, type list and `const` at the top of it
resolved, so that each alternative has one type and keywords of that type only. Pure.

This is the common ground of what is advertised, how arguments are coerced, and which examples are given; the schema itself
remains what decides. The alternatives accept at least what the schema accepts: `not`, `if` and the like are left out, and of
`oneOf` that only one may match.

A schema without `type` is read by its keywords: with `properties` it is an object, with `items` an array; only one with no
keyword of any type stands for every type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product
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
_COMMON = ("enum", *WORDS)


@dataclass(frozen=True, slots=True)
class Alternative:
    """One way to satisfy a schema. `keywords` has no composition and exactly one `type` (a name); `references` are the
    `$ref`s that were followed to get here."""

    keywords: JsonObject
    references: tuple[str, ...] = ()

    @property
    def type(self) -> str:
        return str(self.keywords["type"])


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
        if isinstance(schema, bool):
            schema = _ANYTHING if schema else _NOTHING
        if id(schema) not in self._known:
            if id(schema) in self._open:
                raise self._document.unusable("a part of it refers to itself without end")
            self._open.add(id(schema))
            self._known[id(schema)] = list(_typed(self._flat(schema)))
            self._pinned.append(schema)
            self._open.discard(id(schema))
        return self._known[id(schema)]

    def _flat(self, schema: JsonObject) -> list[Alternative]:
        own = {key: value for key, value in schema.items() if key in _KEPT}
        if "const" in schema:
            own["enum"] = _common_values(own.get("enum"), [schema["const"]])
        if isinstance(schema.get("items"), list):  # how tuples were written before 2020-12
            own["prefixItems"], own["items"] = schema["items"], schema.get("additionalItems", True)
        if "anyOf" in schema or "oneOf" in schema:  # the words on a union are not the words on each of its branches
            own = {key: value for key, value in own.items() if key not in WORDS}
        factors = [[Alternative(own)]]
        if "$ref" in schema:
            reference = schema["$ref"]
            target = self.of(self._document.follow(reference))
            factors.append([Alternative(found.keywords, (reference, *found.references)) for found in target])
        factors += [self.of(part) for part in schema.get("allOf", ())]
        for union in ("anyOf", "oneOf"):
            if union in schema:
                factors.append([found for branch in schema[union] for found in self.of(branch)])
        return self._product(factors)

    def _product(self, factors: list[list[Alternative]]) -> list[Alternative]:
        results = factors[0]
        for factor in factors[1:]:
            if len(results) * len(factor) > MAX_ALTERNATIVES:
                raise self._document.unusable(f"a part of it has more than {MAX_ALTERNATIVES} alternatives")
            pairs = (_both(first, second) for first, second in product(results, factor))
            results = [found for found in pairs if found is not None]
        return results


_KEPT = frozenset({"type", *_COMMON}.union(*_OF_TYPE.values()))
_ANYTHING: JsonObject = {}
_NOTHING: JsonObject = {"enum": []}


def _typed(found: Iterable[Alternative]) -> Iterable[Alternative]:
    """Each alternative once per type that it allows, with the keywords of that type."""
    for alternative in found:
        for name in _types(alternative.keywords):
            kept = (*_COMMON, *_OF_TYPE[name])
            keywords = {key: value for key, value in alternative.keywords.items() if key in kept}
            if "enum" in keywords:
                keywords["enum"] = [value for value in keywords["enum"] if _fits(value, name)]
                if not keywords["enum"]:
                    continue
            yield Alternative({"type": name, **keywords}, alternative.references)


def _types(keywords: JsonObject) -> list[str]:
    declared = keywords.get("type")
    if declared is not None:
        names = [declared] if isinstance(declared, str) else declared
        return [name for name in names if not (name == "integer" and "number" in names)]
    if "enum" in keywords:
        return list(dict.fromkeys(type_of(value) for value in keywords["enum"]))
    implied = [name for name in ("string", "number", "object", "array") if any(key in keywords for key in _OF_TYPE[name])]
    return implied or [name for name in TYPES if name != "integer"]


def _fits(value: Any, name: str) -> bool:
    return type_of(value) == name or (name == "number" and type_of(value) == "integer")


def _both(first: Alternative, second: Alternative) -> Alternative | None:
    """What satisfies both, or None if nothing can. The first one's words win over the second's."""
    if "type" in first.keywords and "type" in second.keywords:
        types = _common_types(_types(first.keywords), _types(second.keywords))
        if not types:
            return None
    else:
        types = []
    merged = {**second.keywords, **first.keywords}
    for key in first.keywords.keys() & second.keywords.keys() & _MERGES.keys():
        merged[key] = _MERGES[key](first.keywords[key], second.keywords[key])
    if types:
        merged["type"] = types
    return Alternative(merged, (*first.references, *second.references))


def _common_types(first: list[str], second: list[str]) -> list[str]:
    both = [name for name in first if name in second]
    narrowed = ("integer" in first and "number" in second) or ("number" in first and "integer" in second)
    return [*both, "integer"] if narrowed and "integer" not in both else both


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
