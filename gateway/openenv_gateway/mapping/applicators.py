"""The keywords of JSON Schema 2020-12 that hand a value, or what is in it, to further schemas.

Each maker takes the schema that has the keyword and `compile`, which turns a subschema into its check.
`unevaluatedProperties` and `unevaluatedItems` are not asserted: OpenEnv's schemas never have them, and the environment checks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from openenv_client.frames import JsonObject
from openenv_gateway.mapping.equality import identity
from openenv_gateway.mapping.faults import Budget, Check, Fault, shortened
from openenv_gateway.mapping.patterns import read_pattern
from openenv_gateway.mapping.references import Schema

Compile = Callable[[Schema], Check]


def required(schema: JsonObject, compile: Compile) -> Check:
    """Every required property is there."""
    names = list(dict.fromkeys(schema["required"]))

    def check(value: Any, budget: Budget) -> Fault | None:
        if not isinstance(value, dict):
            return None
        missing = [name for name in names if name not in value]
        if not missing:
            return None
        return Fault(f"the required {_listed(missing)}", value)

    return check


def members(schema: JsonObject, compile: Compile) -> Check:
    """`properties`, `patternProperties` and `additionalProperties`: each member of an object against its schemas."""
    declared = {name: compile(child) for name, child in schema.get("properties", {}).items()}
    patterned = [(read_pattern(source), compile(child)) for source, child in schema.get("patternProperties", {}).items()]
    rest = schema.get("additionalProperties", True)
    unreadable = any(pattern is None for pattern, _ in patterned)  # it might match any name: the environment decides
    closed, rests = rest is False, () if unreadable else (compile(rest),)
    known = f"only known properties: {_listed(list(declared)) or 'none at all'}"

    def checks_for(name: str) -> list[Check]:
        checks = [check for pattern, check in patterned if pattern and not pattern.refuses(name)]
        if name in declared:
            checks.append(declared[name])
        return checks

    def check(value: Any, budget: Budget) -> Fault | None:
        if not isinstance(value, dict):
            return None
        budget.spend(len(value))
        for name, item in value.items():
            checks = checks_for(name) if patterned else [declared[name]] if name in declared else ()
            if not checks and closed and not unreadable:
                return Fault(known, name)
            for one in checks or rests:
                fault = one(item, budget)
                if fault:
                    return fault.under(name)
        return None

    return check


def property_names(schema: JsonObject, compile: Compile) -> Check:
    """Every name in the object satisfies the schema."""
    inner = compile(schema["propertyNames"])
    return _each(dict, lambda value: list(value), inner)


def dependent_required(schema: JsonObject, compile: Compile) -> Check:
    """Some properties require others."""
    needs = schema["dependentRequired"]

    def check(value: Any, budget: Budget) -> Fault | None:
        if not isinstance(value, dict):
            return None
        missing = [name for given, names in needs.items() if given in value for name in names if name not in value]
        return Fault(f"also {_listed(missing)}", value) if missing else None

    return check


def dependent_schemas(schema: JsonObject, compile: Compile) -> Check:
    """Some properties bring further conditions for the whole object."""
    needs = {name: compile(child) for name, child in schema["dependentSchemas"].items()}

    def check(value: Any, budget: Budget) -> Fault | None:
        applying = [inner for name, inner in needs.items() if isinstance(value, dict) and name in value]
        return next((fault for inner in applying if (fault := inner(value, budget))), None)

    return check


def elements(schema: JsonObject, compile: Compile) -> Check:
    """`prefixItems` and `items`: each element against its schema. A list in `items` is the tuple of earlier drafts."""
    first, rest = schema.get("prefixItems", []), schema.get("items", True)
    if isinstance(rest, list):
        first, rest = rest, schema.get("additionalItems", True)
    heads, others = [compile(child) for child in first], compile(rest)

    def check(value: Any, budget: Budget) -> Fault | None:
        if not isinstance(value, list):
            return None
        budget.spend(len(value))
        for index, item in enumerate(value):
            fault = (heads[index] if index < len(heads) else others)(item, budget)
            if fault:
                return fault.under(index)
        return None

    return check


def contains(schema: JsonObject, compile: Compile) -> Check:
    """Between `minContains` (1) and `maxContains` elements satisfy the schema."""
    inner = compile(schema["contains"])
    least, most = schema.get("minContains", 1), schema.get("maxContains", float("inf"))

    def check(value: Any, budget: Budget) -> Fault | None:
        if not isinstance(value, list):
            return None
        budget.spend(len(value))
        count = sum(inner(item, budget) is None for item in value)
        return None if least <= count <= most else Fault(f"{least:g} to {most:g} items of a certain kind", value)

    return check


def unique(schema: JsonObject, compile: Compile) -> Check:
    """No element occurs twice, as JSON compares."""

    def check(value: Any, budget: Budget) -> Fault | None:
        if not isinstance(value, list) or not schema["uniqueItems"]:
            return None
        budget.spend(len(value))
        return None if len({identity(item) for item in value}) == len(value) else Fault("items that all differ", value)

    return check


def _each(kind: type, parts: Callable[[Any], list[Any]], inner: Check) -> Check:
    def check(value: Any, budget: Budget) -> Fault | None:
        if not isinstance(value, kind):
            return None
        return next((fault for part in parts(value) if (fault := inner(part, budget))), None)

    return check


def _listed(names: list[str]) -> str:
    return shortened(", ".join(names))
