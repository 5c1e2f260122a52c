"""The keywords of JSON Schema 2020-12 that combine schemas for one and the same value: allOf, anyOf, oneOf, not, if."""

from __future__ import annotations

from typing import Any

from openenv_client.frames import JsonObject
from openenv_gateway.mapping.applicators import Compile
from openenv_gateway.mapping.faults import BRANCH_WORK, Budget, Check, Fault


def all_of(schema: JsonObject, compile: Compile) -> Check:
    """Every branch accepts the value."""
    branches = [compile(child) for child in schema["allOf"]]

    def check(value: Any, budget: Budget) -> Fault | None:
        budget.spend(BRANCH_WORK * len(branches))
        return next((fault for branch in branches if (fault := branch(value, budget))), None)

    return check


def any_of(schema: JsonObject, compile: Compile) -> Check:
    """At least one branch accepts the value."""
    branches = [compile(child) for child in schema["anyOf"]]

    def check(value: Any, budget: Budget) -> Fault | None:
        budget.spend(BRANCH_WORK * len(branches))
        faults = []
        for branch in branches:
            fault = branch(value, budget)
            if fault is None:
                return None
            faults.append(fault)
        return nearest(faults, value)

    return check


def one_of(schema: JsonObject, compile: Compile) -> Check:
    """Exactly one branch accepts the value."""
    branches = [compile(child) for child in schema["oneOf"]]

    def check(value: Any, budget: Budget) -> Fault | None:
        budget.spend(BRANCH_WORK * len(branches))
        faults = [fault for branch in branches if (fault := branch(value, budget))]
        accepted = len(branches) - len(faults)
        if accepted == 1:
            return None
        return nearest(faults, value) if not accepted else Fault(f"only one of {len(branches)} forms, not {accepted}", value)

    return check


def negation(schema: JsonObject, compile: Compile) -> Check:
    """The inner schema does not accept the value."""
    inner = compile(schema["not"])
    return lambda value, budget: Fault("a value that the schema does not exclude", value) if not inner(value, budget) else None


def condition(schema: JsonObject, compile: Compile) -> Check:
    """`then` where `if` accepts the value, `else` where it does not."""
    test = compile(schema["if"])
    then, otherwise = compile(schema.get("then", True)), compile(schema.get("else", True))
    return lambda value, budget: (otherwise if test(value, budget) else then)(value, budget)


def nearest(faults: list[Fault], value: Any) -> Fault:
    """The one fault that tells most about a union that accepts nothing: the deepest if it stands alone, else all forms."""
    deepest = max((len(fault.path) for fault in faults), default=0)
    telling = [fault for fault in faults if len(fault.path) == deepest]
    if len(telling) == 1 and deepest:
        return telling[0]
    forms = dict.fromkeys(fault.expected for fault in faults if not fault.path)
    return Fault(" or ".join(forms) or "one of several forms", value)
