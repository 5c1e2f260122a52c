"""What one tool's arguments must be: the original schema that decides, the rewritten one that is advertised, and the way from
arguments to what the environment takes. Pure; compiled once, when tools are built."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from openenv_client.frames import JsonObject
from openenv_gateway.mapping.alternatives import Alternatives
from openenv_gateway.mapping.examples import Examples, NoExample
from openenv_gateway.mapping.faults import Budget, Fault, TooMuchWork
from openenv_gateway.mapping.fitting import Fitter, Unfit
from openenv_gateway.mapping.mirrors import Mirror, mirrors_of
from openenv_gateway.mapping.native import native
from openenv_gateway.mapping.options import SchemaStyle
from openenv_gateway.mapping.references import Document, Schema
from openenv_gateway.mapping.schemas import advertise
from openenv_gateway.mapping.shapes import joined, without
from openenv_gateway.mapping.validation import Validator

_TOO_MUCH = Fault("arguments that are smaller or less deeply nested", "more than can be checked")


class Contract:
    """The arguments of one tool.

    `schema` is a part of `document`, or built from its parts. Optional properties that are `hidden` are accepted and not
    advertised; `fill` is what the gateway itself adds (the discriminator of a variant). `noun` is what keys beyond the declared
    ones are called. `style`: whether the form that every host reads is advertised, or the schema as it is. Raises
    UnusableSchema if the schema accepts no object or cannot be advertised.

    `mirrors` are the arguments that clients repeat in HTTP headers.
    """

    def __init__(
        self,
        document: Document,
        schema: JsonObject,
        *,
        hidden: Callable[[str, Schema], bool] = lambda name, schema: False,
        fill: Mapping[str, Any] | None = None,
        noun: str = "arguments",
        style: SchemaStyle = "portable",
    ) -> None:
        try:
            self._prepare(document, schema, hidden, dict(fill or {}))
            self._advertise(document, schema, noun, style)
        except RecursionError:
            raise document.unusable("its references are nested too deeply") from None

    def _prepare(
        self, document: Document, schema: JsonObject, hidden: Callable[[str, Schema], bool], fill: JsonObject
    ) -> None:
        self._alternatives, self._validator = Alternatives(document), Validator(document)
        forms = [form for form in self._alternatives.of(schema) if form.type == "object"]
        if not forms:
            raise document.unusable("it accepts no object, and arguments are always an object")
        whole = joined(forms)
        optional = whole.get("properties", {}).keys() - set(whole.get("required", ()))
        self.keywords = without(whole, lambda name, child: name in fill or (name in optional and hidden(name, child)))
        self.fill = fill
        declared, listed = whole.get("properties", {}), self.keywords.get("properties", {})
        self._unlisted = frozenset([*fill, *(name for name in declared if name not in listed)])
        self._check = self._validator.check(schema, self._unlisted)
        self._fitter = Fitter(self._alternatives, self._validator)

    def _advertise(self, document: Document, schema: JsonObject, noun: str, style: SchemaStyle) -> None:
        own = native(document, schema) if style == "native" else None
        self._examples = Examples(self._alternatives, self._validator, original=own is not None)
        if own is None:
            shown = advertise(document, self._alternatives, self.keywords, noun)
            self.advertised, self._translates = shown.schema, shown.translates
            self.mirrors: tuple[Mirror, ...] = ()
        else:
            self.advertised, self._translates = own, False
            self.mirrors = mirrors_of(own)

    @property
    def names(self) -> frozenset[str]:
        """Every argument name that means something to this tool, advertised or not."""
        return self._unlisted.union(self.advertised.get("properties", ()), self.keywords.get("properties", ()))

    def read(self, arguments: Mapping[str, Any]) -> JsonObject:
        """What the environment takes for these arguments. Raises Unfit if the original schema refuses them, and if finding
        that out takes too much work. Never returns the mapping that was given."""
        budget, first = Budget(), _TOO_MUCH
        try:
            plain = {**self.fill, **arguments}
            if not self._translates:
                found = self._check(plain, budget)
                if found is None:
                    return plain
                first = found
            return self._fitted(arguments, budget)
        except (TooMuchWork, RecursionError):  # what the first check found, if it came to an end, tells more
            raise Unfit(first) from None

    def _fitted(self, arguments: Mapping[str, Any], budget: Budget) -> JsonObject:
        given = {name: item for name, item in arguments.items() if item is not None or name not in self._unlisted}
        fitted = {**self.fill, **self._fitter.fit(self.keywords, given, budget)}
        fault = self._check(fitted, budget)
        if fault:
            raise Unfit(fault)
        return fitted

    def example(self, also: Collection[str] = ()) -> JsonObject | None:
        """Arguments that `read` accepts, as an agent would give them: the required ones and those named in `also`; if there
        are none of either, all. None if none were found."""
        optional = () if self.keywords.get("required") else self.keywords.get("properties", ())
        for names in (also or optional, ()):
            try:
                example = self._examples.object(self.keywords, names)
                self.read(example)
            except (NoExample, Unfit, TooMuchWork, RecursionError):
                continue
            return example
        return None
