"""The most that checking a value can cost, counted before it is done: native code cannot be stopped once it runs. Pure.

A schema hands each part of a value to further schemas, some of them to several at once (unions, references that double at
every level), and what is handed on multiplies with every level. So the cost is a sum over the levels of the value: what lies
on a level, times the number of schemas that may look at one part there. The count is an upper bound: it does not know which
branch of a union a value takes, only that array keywords never look into an object, and one key goes to one property.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from openenv_client.frames import JsonObject
from openenv_gateway.mapping.faults import TooMuchWork
from openenv_gateway.mapping.references import Document, Schema

MAX_LEVELS = 100
"""Levels of arrays and objects within a value. The library follows them on the machine's stack, which is finite."""
MAX_NESTED = 128
"""Schemas within schemas for one and the same value, references followed. The library follows these on the stack as well."""

_PATTERN_WORK = 50
"""How much longer a regular expression takes, at worst, than other keywords do for the same text."""


def measured(value: Any) -> list[int]:
    """How much there is on each level of a value: one for each part, and one for every 16 characters. Raises TooMuchWork for
    more than MAX_LEVELS."""
    flat = _flat(value)
    if flat is not None:
        return flat
    levels: list[int] = []
    layer = [value]
    while layer:
        size = len(layer)
        below: list[Any] = []
        for part in layer:
            if isinstance(part, str):
                size += len(part) >> 4
            elif isinstance(part, dict):
                size += sum(map(len, part)) >> 4
                below += part.values()
            elif isinstance(part, list):
                below += part
        levels.append(size)
        if len(levels) > MAX_LEVELS:
            raise TooMuchWork
        layer = below
    return levels


def _flat(value: Any) -> list[int] | None:
    """The same for an object without arrays and objects in it, as nearly all arguments are; None for anything else."""
    if type(value) is not dict:
        return None
    below = len(value)
    for part in value.values():
        kind = type(part)
        if kind is str:
            below += len(part) >> 4
        elif kind is dict or kind is list:
            return None
    own = 1 + (sum(map(len, value)) >> 4)
    return [own, below] if below else [own]


class Work:
    """How many checks the schemas of one document may make on one part of a value, by how deep it lies in the value."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._known: dict[tuple[int, int], tuple[tuple[int, int], Schema]] = {}  # by identity, so with what must live as long
        self._open: set[int] = set()

    def weight(self, schema: Schema, level: int) -> int:
        """The checks on one part that lies `level` levels below what `schema` is for; at least one.

        Raises UnusableSchema for a schema that refers to itself without going deeper into the value, or whose references are
        nested more than MAX_NESTED deep."""
        return max(1, *self._ways(schema, level))

    def _ways(self, schema: Schema, level: int) -> tuple[int, int]:
        """(checks if the value is an array, checks if it is an object); at level 0 these are the same."""
        if isinstance(schema, bool):
            return (0, 0)
        key = (id(schema), level)
        if key not in self._known:
            self._known[key] = (self._counted(schema, level), schema)
        return self._known[key][0]

    def _counted(self, schema: JsonObject, level: int) -> tuple[int, int]:
        if not level:  # the first to be counted of every schema: here it shows whether its references end
            if id(schema) in self._open or len(self._open) > MAX_NESTED:
                raise self._document.unusable("a part of it refers to itself without end, or through too many references")
            self._open.add(id(schema))
        array, item = self._within(schema, level) if level else (_own(schema),) * 2
        for branch in self._branches(schema):
            one, other = self._ways(branch, level)
            array, item = array + one, item + other
        if not level:
            self._open.discard(id(schema))
        return array, item

    def _branches(self, schema: JsonObject) -> Iterator[Schema]:
        """The schemas that get the same value."""
        if "$ref" in schema:
            yield self._document.follow(schema["$ref"])
        for keyword in ("allOf", "anyOf", "oneOf"):
            yield from schema.get(keyword, ())
        yield from (schema[keyword] for keyword in ("not", "if", "then", "else") if keyword in schema)
        yield from schema.get("dependentSchemas", {}).values()

    def _within(self, schema: JsonObject, level: int) -> tuple[int, int]:
        def most(schemas: list[Schema]) -> int:
            return max((max(self._ways(child, level - 1)) for child in schemas), default=0)

        rest, keys = schema.get("items", True), list(schema.get("properties", {}).values())
        rests = rest if isinstance(rest, list) else [rest]
        items = [*schema.get("prefixItems", ()), *rests, schema.get("additionalItems", True)]
        patterned = sum(most([child]) for child in schema.get("patternProperties", {}).values())
        names = most([schema.get("propertyNames", True)])
        array = most(items) + most([schema.get("contains", True)])
        return array, most([*keys, schema.get("additionalProperties", True)]) + patterned + names


def _own(schema: JsonObject) -> int:
    """What a schema costs without its subschemas: one, and something for long lists to compare with and for patterns."""
    listed = sum(len(found) for found in schema.values() if isinstance(found, list | dict)) >> 4
    compared = sum(len(json.dumps(schema[keyword])) for keyword in ("enum", "const") if keyword in schema) >> 4
    patterns = ("pattern" in schema) + len(schema.get("patternProperties", ()))
    return 1 + listed + compared + _PATTERN_WORK * patterns
