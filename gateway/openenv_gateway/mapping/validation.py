"""A JSON Schema as a check: the library `jsonschema-rs` decides, this file bounds its work and says what it found. Pure.

What the library gets is one self-contained schema (`standalone`); it never resolves a reference elsewhere and has no way to
fetch one. It is compiled, and the library loaded, when a check is first used, so that the gateway need not wait for either
when it starts; what can be wrong with a schema has been found by then (`read_document`, `Work`).

Native code cannot be interrupted, so before it runs, the most that it can have to do is counted (`work`) and paid for.
"""

from __future__ import annotations

from collections.abc import Collection
from operator import mul
from typing import TYPE_CHECKING, Any

from openenv_gateway.mapping.faults import BRANCH_WORK, Budget, Fault
from openenv_gateway.mapping.references import Document, Schema
from openenv_gateway.mapping.standalone import Rewriter, compiled
from openenv_gateway.mapping.telling import first_fault
from openenv_gateway.mapping.work import Work, measured

if TYPE_CHECKING:
    import jsonschema_rs

MAX_TOLD = 20_000
"""The work of a check up to which it says what is wrong, and where. Errors of nested unions hold one another: each costs the
library a hundred times what finding it does."""

_UNTOLD = "what the schema describes (too large, or too deep in unions, to say where it differs)"
_NOT_JSON = "only text of whole Unicode characters"


class Check:
    """Whether values satisfy one schema. Both ways to ask raise TooMuchWork if the answer could take too long, and
    UnusableSchema if the library refuses what `read_document` found well formed, which no schema known to us makes it do."""

    def __init__(self, document: Document, schema: Schema, rewriter: Rewriter, work: Work, hidden: Collection[str]) -> None:
        self._document = document
        self._schema = schema
        self._rewriter = rewriter
        self._work = work
        self._hidden = hidden
        self._weights = [work.weight(schema, 0)]
        self._standalone: Schema = True
        self._compiled: jsonschema_rs.Validator | None = None

    def __call__(self, value: Any, budget: Budget) -> Fault | None:
        """None if the value satisfies the schema, else the first thing that is wrong with it."""
        cost = self._pay(value, budget)
        validator = self._ready(budget)
        try:
            if validator.is_valid(value):
                return None
            if cost > MAX_TOLD:
                return Fault(_UNTOLD, value)
            return first_fault(list(validator.iter_errors(value)), self._standalone, value, self._hidden)
        except ValueError:
            return Fault(_NOT_JSON, value)

    def accepts(self, value: Any, budget: Budget) -> bool:
        """Whether the value satisfies the schema, for those who need not know why."""
        self._pay(value, budget)
        validator = self._ready(budget)
        try:
            return validator.is_valid(value)
        except ValueError:
            return False

    def _pay(self, value: Any, budget: Budget) -> int:
        levels, weights = measured(value), self._weights
        while len(weights) < len(levels):
            weights.append(self._work.weight(self._schema, len(weights)))
        cost: int = sum(map(mul, levels, weights))
        budget.spend(cost)
        return cost

    def _ready(self, budget: Budget) -> jsonschema_rs.Validator:
        if self._compiled is None:
            self._standalone, parts = self._rewriter.standalone(self._schema)
            budget.spend(BRANCH_WORK * parts)
            try:
                self._compiled = compiled(self._standalone)
            except ValueError as error:
                raise self._document.unusable(f"the validator does not take it: {error}") from None
        return self._compiled


class Validator:
    """The checks of every schema within one document."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._rewriter = Rewriter(document)
        self._work = Work(document)
        self._checks: dict[tuple[int, frozenset[str]], Check] = {}  # by identity: a check keeps its schema alive

    def check(self, schema: Schema, hidden: frozenset[str] = frozenset()) -> Check:
        """The check that `schema`, a part of the document or built from its parts, amounts to. Its faults never name the
        `hidden` properties as known ones of the whole value. Raises UnusableSchema if the schema refers to itself without end.
        """
        known = self._checks.get((id(schema), hidden))
        if known is None:
            known = self._checks[id(schema), hidden] = Check(self._document, schema, self._rewriter, self._work, hidden)
        return known
