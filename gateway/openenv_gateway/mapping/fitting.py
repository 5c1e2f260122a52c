"""Arguments as hosts send them, turned into what the original schema means. Pure.

Two things, in one walk along the schema:

- translation, which is certain: advertised names back to original ones, `options_json` merged into its object;
- coercion, only where the value as it came fits nothing and exactly one reading of it fits: a null for an argument that may
  not be null is an argument left out; a number, a boolean, an object or an array may come as JSON in a string, because
  several hosts send them so. Nothing else is guessed.

Whether the result is good is not decided here: the original schema checks it afterwards.
"""

from __future__ import annotations

import json
from math import isfinite
from typing import Any, NoReturn

from openenv_client.frames import JsonObject
from openenv_gateway.mapping.alternatives import Alternative, Alternatives
from openenv_gateway.mapping.equality import identity
from openenv_gateway.mapping.faults import BRANCH_WORK, Budget, Fault
from openenv_gateway.mapping.references import Schema
from openenv_gateway.mapping.shapes import Shape, shape_of
from openenv_gateway.mapping.validation import Validator

_READING_WORK = 3 * BRANCH_WORK
"""What reading a value as one form of its schema costs of the budget."""


class Unfit(Exception):
    """Arguments that cannot be what is wanted; `fault` says where and why."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.expected)
        self.fault = fault


class Fitter:
    """Fits values to the schemas of one document. Raises Unfit for a bad escape, TooMuchWork when the budget is spent."""

    def __init__(self, alternatives: Alternatives, validator: Validator) -> None:
        self._alternatives = alternatives
        self._validator = validator
        self._shapes: dict[int, tuple[JsonObject, Shape]] = {}

    def fit(self, keywords: JsonObject, arguments: JsonObject, budget: Budget) -> JsonObject:
        """The arguments of the root object with these keywords, translated and coerced."""
        return self._object(keywords, arguments, budget)[0]

    def _value(self, schema: Schema, value: Any, budget: Budget) -> tuple[Any, bool]:
        """(what the value is taken for, whether that is certain). A value that fits nothing comes back as it was, or, if the
        schema has one form only, as far as it could be read."""
        forms = self._alternatives.of(schema)
        budget.spend(_READING_WORK * len(forms))
        readings = [self._reading(form, value, budget) for form in forms]
        fitting = [reading for reading in readings if reading is not None]
        certain = next((reading for reading in fitting if reading[1]), None)
        if certain:
            return certain
        distinct = {identity(result): result for result, _ in fitting}
        if len(distinct) == 1:
            return next(iter(distinct.values())), False
        partial = [form for form in forms if form.type != "null"]
        return self._form(partial[0], value, budget) if len(partial) == 1 else (value, True)

    def _reading(self, form: Alternative, value: Any, budget: Budget) -> tuple[Any, bool] | None:
        """The value read as this form; None if it does not fit it."""
        try:
            result, certain = self._form(form, value, budget)
        except Unfit:
            return None
        return (result, certain) if self._validator.check(form.keywords).accepts(result, budget) else None

    def _form(self, form: Alternative, value: Any, budget: Budget) -> tuple[Any, bool]:
        if isinstance(value, str) and form.type != "string":
            value, certain = decoded(value), False
        else:
            certain = True
        if isinstance(value, dict) and form.type == "object":
            value, inner = self._object(form.keywords, value, budget)
        elif isinstance(value, list) and form.type == "array":
            value, inner = self._array(form.keywords, value, budget)
        else:
            inner = True
        return value, certain and inner

    def _object(self, keywords: JsonObject, value: JsonObject, budget: Budget) -> tuple[JsonObject, bool]:
        shape = self._shape(keywords)
        rest: Schema = keywords.get("additionalProperties", True)
        result, certain = {}, True
        for name, item in _with_escape(shape, value).items():
            original = shape.names.get(name, name)
            schema = shape.properties[original] if original in shape.properties else rest
            if item is None and original in shape.properties and not self._may_be_null(schema):
                certain = False
                continue
            try:
                result[original], sure = self._value(schema, item, budget)
            except Unfit as error:
                raise Unfit(error.fault.under(name)) from None
            certain = certain and sure
        return result, certain

    def _array(self, keywords: JsonObject, value: list[Any], budget: Budget) -> tuple[list[Any], bool]:
        heads, rest = keywords.get("prefixItems", []), keywords.get("items", True)
        results, certain = [], True
        for index, item in enumerate(value):
            try:
                result, sure = self._value(heads[index] if index < len(heads) else rest, item, budget)
            except Unfit as error:
                raise Unfit(error.fault.under(index)) from None
            results.append(result)
            certain = certain and sure
        return results, certain

    def _may_be_null(self, schema: Schema) -> bool:
        return any(form.type == "null" for form in self._alternatives.of(schema))

    def _shape(self, keywords: JsonObject) -> Shape:
        known = self._shapes.get(id(keywords))
        if known is None:
            known = self._shapes[id(keywords)] = (keywords, shape_of(keywords))
        return known[1]


def decoded(text: str) -> Any:
    """What a JSON text stands for (`True` and `False` as well, as Python hosts write them); the text itself if it is none."""
    try:
        value = json.loads(text.lower() if text in ("True", "False") else text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return text
    return text if isinstance(value, float) and not isfinite(value) else value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _with_escape(shape: Shape, value: JsonObject) -> JsonObject:
    """The object with the keys from its escape beside its own, which win. An escape that is null or blank has none."""
    if shape.escape not in value:
        return value
    given = value[shape.escape]
    own = {name: item for name, item in value.items() if name != shape.escape}
    if given is None or isinstance(given, str) and not given.strip():
        return own
    further = decoded(given) if isinstance(given, str) else given
    if not isinstance(further, dict):
        raise Unfit(Fault("a JSON object in a string", given, (shape.escape,)))
    return {**further, **own}
