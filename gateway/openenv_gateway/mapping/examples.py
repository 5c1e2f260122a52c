"""Arguments that would pass, made from the schema, for errors to show. Pure.

An example is a proposal: whoever shows one checks it first (see `contract`), so that an agent never copies a wrong one.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from typing import Any

from openenv_client.frames import JsonObject
from openenv_gateway.mapping.alternatives import Alternative, Alternatives
from openenv_gateway.mapping.faults import Budget
from openenv_gateway.mapping.references import Schema
from openenv_gateway.mapping.shapes import shape_of
from openenv_gateway.mapping.validation import Validator

MAX_LEVELS = 8
MAX_LENGTH = 100
"""Characters or items of an example. A schema that wants more gets none."""

_TEXTS = ("text", "a", "A", "1", "ab", "a1", "abc", "ABC", "123", "e2e4", "A1", "2024-01-31", "12:00", "1.0", "a@b.example", "http://a.example")

_BOUNDS = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")


class NoExample(Exception):
    """No value could be found that the schema is likely to accept."""


class Examples:
    """Examples for the schemas of one document, under the names that are advertised: those of `shapes`, or the `original`."""

    def __init__(self, alternatives: Alternatives, validator: Validator, *, original: bool = False) -> None:
        self._original = original
        self._alternatives = alternatives
        self._validator = validator

    def object(self, keywords: JsonObject, also: Collection[str] = (), level: int = 0) -> JsonObject:
        """An object with its required properties, and those named in `also`. Raises NoExample."""
        shape = shape_of(keywords)
        return {
            original if self._original else name: self._value(shape.properties[original], level + 1)
            for name, original in shape.names.items()
            if original in shape.required or original in also
        }

    def _value(self, schema: Schema, level: int) -> Any:
        if level > MAX_LEVELS:
            raise NoExample
        for form in sorted(self._alternatives.of(schema), key=lambda form: form.type == "null"):
            try:
                return self._form(form, level)
            except NoExample:
                continue
        raise NoExample

    def _form(self, form: Alternative, level: int) -> Any:
        if form.type == "object" and "enum" not in form.keywords:
            return self.object(form.keywords, level=level)
        check = self._validator.check(form.keywords)
        for candidate in self._candidates(form, level):
            if check.accepts(candidate, Budget()):
                return candidate
        raise NoExample

    def _candidates(self, form: Alternative, level: int) -> Iterator[Any]:
        keywords = form.keywords
        yield from (keywords["default"] for key in ("default",) if key in keywords)
        examples = keywords.get("examples")
        yield from examples if isinstance(examples, list) else ()
        yield from keywords.get("enum", ())
        if form.type == "string":
            yield from _texts(keywords)
        elif form.type in ("integer", "number"):
            yield from _numbers(keywords)
        elif form.type == "array":
            yield from self._arrays(keywords, level)
        elif form.type == "boolean":
            yield from (True, False)
        else:
            yield None

    def _arrays(self, keywords: JsonObject, level: int) -> Iterator[list[Any]]:
        """One item where allowed, because that shows more than none; else as few as possible."""
        heads, rest = keywords.get("prefixItems", []), keywords.get("items", True)
        least = keywords.get("minItems", 0)
        for size in sorted({max(least, len(heads), 1), least}, reverse=True):
            if size <= MAX_LENGTH:
                try:
                    yield [self._value(heads[index] if index < len(heads) else rest, level + 1) for index in range(int(size))]
                except NoExample:
                    continue


def _texts(keywords: JsonObject) -> Iterator[str]:
    yield from _TEXTS
    least = keywords.get("minLength", 0)
    if least <= MAX_LENGTH:
        yield from ("x" * int(least), "1" * int(least))


def _numbers(keywords: JsonObject) -> Iterator[float]:
    """Small numbers, then numbers at and near the limits."""
    step = keywords.get("multipleOf", 1)
    yield from (1, 0)
    for limit in (keywords.get(key) for key in _BOUNDS):
        if isinstance(limit, int | float) and not isinstance(limit, bool) and abs(limit) < 2**53:
            yield from (limit, math.ceil(limit), math.floor(limit))
            yield from (math.floor(limit / step) * step, math.ceil(limit / step) * step)
            yield from (math.floor(limit / step + 1) * step, math.ceil(limit / step - 1) * step)
    limits = [float(keywords[key]) for key in _BOUNDS if key in keywords]
    yield sum(limits) / max(len(limits), 1)
