"""A JSON Schema as a check, compiled once: fast on good values, bounded on hostile ones, telling on bad ones. Pure.

Written for the hot path: an ordinary action is checked in about a microsecond and the gateway need not load a general
validator when it starts. The tests hold it against one (`jsonschema`) on generated schemas and values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from openenv_client.frames import JsonObject
from openenv_gateway.mapping import applicators, combinators
from openenv_gateway.mapping.applicators import Compile
from openenv_gateway.mapping.assertions import ASSERTIONS
from openenv_gateway.mapping.faults import BRANCH_WORK, Budget, Check, Fault
from openenv_gateway.mapping.references import Document, Schema

_APPLICATORS: dict[tuple[str, ...], Callable[[JsonObject, Compile], Check]] = {
    ("required",): applicators.required,
    ("properties", "patternProperties", "additionalProperties"): applicators.members,
    ("propertyNames",): applicators.property_names,
    ("dependentRequired",): applicators.dependent_required,
    ("dependentSchemas",): applicators.dependent_schemas,
    ("prefixItems", "items"): applicators.elements,
    ("contains",): applicators.contains,
    ("uniqueItems",): applicators.unique,
    ("allOf",): combinators.all_of,
    ("anyOf",): combinators.any_of,
    ("oneOf",): combinators.one_of,
    ("not",): combinators.negation,
    ("if",): combinators.condition,
}


class Validator:
    """The checks of every schema within one document."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._checks: dict[int, Check] = {}
        self._pinned: list[JsonObject] = []  # `_checks` goes by identity, so what it knows must live as long

    def check(self, schema: Schema) -> Check:
        """The check that `schema`, a part of the document or built from its parts, amounts to."""
        if isinstance(schema, bool):
            return _accept if schema else _refuse
        known = self._checks.get(id(schema))
        if known is None:
            known = _all([*self._assertions(schema), *self._applicators(schema)])
            self._checks[id(schema)] = known
            self._pinned.append(schema)
        return known

    def _assertions(self, schema: JsonObject) -> list[Check]:
        made = (make(schema[keyword]) for keyword, make in ASSERTIONS.items() if keyword in schema)
        return [check for check in made if check is not None]

    def _applicators(self, schema: JsonObject) -> list[Check]:
        checks = [make(schema, self.check) for keywords, make in _APPLICATORS.items() if any(key in schema for key in keywords)]
        return [self._reference(schema["$ref"]), *checks] if "$ref" in schema else checks

    def _reference(self, reference: str) -> Check:
        target = self._document.follow(reference)

        def check(value: Any, budget: Budget) -> Fault | None:
            budget.spend(BRANCH_WORK)
            return self.check(target)(value, budget)  # compiled when first used: definitions may be recursive

        return check


def _accept(value: Any, budget: Budget) -> Fault | None:
    return None


def _refuse(value: Any, budget: Budget) -> Fault | None:
    return Fault("nothing: no value is allowed here", value)


def _all(checks: list[Check]) -> Check:
    if len(checks) <= 1:
        return checks[0] if checks else _accept

    def check(value: Any, budget: Budget) -> Fault | None:
        for one in checks:
            fault = one(value, budget)
            if fault is not None:
                return fault
        return None

    return check
