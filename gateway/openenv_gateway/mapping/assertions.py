"""The keywords of JSON Schema 2020-12 that look at one value: type, enum, const, and the limits on text, numbers and sizes.

Each maker takes the keyword's value and returns a check that accepts every value of the types it does not speak about.
`format` is not asserted, as the standard has it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from openenv_gateway.mapping.equality import identity, type_of
from openenv_gateway.mapping.faults import Budget, Check, Fault, shortened
from openenv_gateway.mapping.patterns import read_pattern

_NOUNS = {"array": "an array", "object": "an object", "integer": "an integer", "null": "null"}


def noun(name: str) -> str:
    """A type with its article: `an integer`, `a string`."""
    return _NOUNS.get(name, f"a {name}")


def values(listed: list[Any]) -> str:
    """The values of an enum as words, cut to a readable length."""
    texts = [json.dumps(value, ensure_ascii=False) for value in listed]
    text = shortened(", ".join(texts), 400)
    return text if len(texts) == 1 else f"one of {text}"


def of_type(names: str | list[str]) -> Check:
    """The value is of the type, or of one of the types."""
    wanted = frozenset([names] if isinstance(names, str) else names)
    if "number" in wanted:
        wanted |= {"integer"}
    expected = " or ".join(noun(name) for name in ([names] if isinstance(names, str) else names))
    if wanted == {"string"}:  # most arguments
        return lambda value, budget: None if isinstance(value, str) else Fault(expected, value)
    return lambda value, budget: None if type_of(value) in wanted else Fault(expected, value)


def in_enum(listed: list[Any]) -> Check:
    """The value equals one of the listed ones, as JSON compares."""
    expected = values(listed) if listed else "nothing: no value is allowed here"
    known = frozenset(identity(value) for value in listed)
    types = frozenset(type_of(value) for value in listed)

    def check(value: Any, budget: Budget) -> Fault | None:
        if type_of(value) not in types:  # never walk a large value to compare it with a word
            return Fault(expected, value)
        budget.spend(len(value) if isinstance(value, list | dict) else 1)
        return None if identity(value) in known else Fault(expected, value)

    return check


def matching(source: str) -> Check | None:
    """The text matches the pattern, as far as that can be told in little time; None for a pattern unknown to Python."""
    pattern = read_pattern(source)
    if pattern is None:
        return None
    expected = f"a string that matches the pattern {shortened(source)}"

    def check(value: Any, budget: Budget) -> Fault | None:
        return Fault(expected, value) if isinstance(value, str) and pattern.refuses(value) else None

    return check


def multiple_of(factor: float) -> Check:
    """The number is a whole multiple of `factor`."""

    def is_multiple(value: float) -> bool:
        if isinstance(value, float) and not math.isfinite(value):
            return False
        if isinstance(factor, int):
            return (value if isinstance(value, int) else Fraction(value)) % factor == 0
        try:
            quotient = value / factor
        except OverflowError:
            quotient = math.inf
        return quotient.is_integer() if math.isfinite(quotient) else Fraction(value) % Fraction(factor) == 0

    def check(value: Any, budget: Budget) -> Fault | None:
        return None if not _is_number(value) or is_multiple(value) else Fault(f"a multiple of {factor:g}", value)

    return check


def _bound(words: str, kept: Callable[[Any, Any], bool]) -> Callable[[float], Check | None]:
    def make(limit: float) -> Check | None:
        if isinstance(limit, bool):  # draft 4's exclusiveMinimum, which only qualifies minimum
            return None
        expected = f"a number {words} {limit}"

        def check(value: Any, budget: Budget) -> Fault | None:
            return None if not _is_number(value) or kept(value, limit) else Fault(expected, value)

        return check

    return make


def _size(kind: type[str | list[Any] | dict[str, Any]], words: str, at_least: bool) -> Callable[[float], Check]:
    def fits(value: Any, limit: float) -> bool:
        return not isinstance(value, kind) or (len(value) >= limit if at_least else len(value) <= limit)

    def make(limit: float) -> Check:
        expected = words.format(f"{'at least' if at_least else 'at most'} {limit:g}")

        def check(value: Any, budget: Budget) -> Fault | None:
            return None if fits(value, limit) else Fault(expected, value)

        return check

    return make


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


ASSERTIONS: dict[str, Callable[[Any], Check | None]] = {
    "type": of_type,
    "const": lambda value: in_enum([value]),
    "enum": in_enum,
    "minLength": _size(str, "a string of {} characters", True),
    "maxLength": _size(str, "a string of {} characters", False),
    "pattern": matching,
    "minimum": _bound("not below", lambda value, limit: value >= limit),
    "maximum": _bound("not above", lambda value, limit: value <= limit),
    "exclusiveMinimum": _bound("above", lambda value, limit: value > limit),
    "exclusiveMaximum": _bound("below", lambda value, limit: value < limit),
    "multipleOf": multiple_of,
    "minItems": _size(list, "an array of {} items", True),
    "maxItems": _size(list, "an array of {} items", False),
    "minProperties": _size(dict, "an object of {} properties", True),
    "maxProperties": _size(dict, "an object of {} properties", False),
}
"""Keyword → maker of its check, in the order in which faults are most telling."""
