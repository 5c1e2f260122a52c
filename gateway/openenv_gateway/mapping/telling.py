"""What the library found wrong, as the one Fault that helps most, in words that an agent can act on. Pure.

The library reports each error with the path of the keyword within its schema and of the value within the whole. The words are
made from the keyword as it stands in the schema, and the value as it came.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from openenv_client.frames import JsonObject
from openenv_gateway.mapping.faults import Fault, noun, shortened, values
from openenv_gateway.mapping.references import Schema

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

Path = tuple[str | int, ...]

_NOTHING = "nothing: no value is allowed here"


def first_fault(errors: list[ValidationError], schema: Schema, value: Any, hidden: Collection[str] = ()) -> Fault:
    """The fault that comes first for whoever reads the value from outside: the wrong type before what that type lacks, what is
    missing before what is wrong deeper within. `errors` are all that `schema` has about `value`, at least one; `hidden` are
    properties of the whole value that are never told of."""
    return _Teller(schema, value, hidden).fault(errors)


class _Teller:
    """`value` is what lies at `place` of the whole; for `propertyNames` it is the name of a property there."""

    def __init__(self, schema: Schema, value: Any, hidden: Collection[str] = (), place: Path = ()) -> None:
        self._schema = schema
        self._value = value
        self._hidden = hidden
        self._place = place

    def fault(self, errors: list[ValidationError]) -> Fault:
        error = min(errors, key=_precedence)
        found, below = _followed(self._value, error.instance_path[len(self._place) :])
        path = (*self._place, *below)
        special = _SPECIAL.get(error.kind.name)
        if special is not None:
            return special(self, error, found, path)
        node = self._node(error)
        return Fault(_WORDS.get(keyword_of(error), _other)(node, found), found, path)

    def _node(self, error: ValidationError) -> JsonObject:
        """The schema that has the keyword which the error is about."""
        node: JsonObject = _followed(self._schema, error.schema_path[:-1])[0]
        return node

    def nothing(self, error: ValidationError, found: Any, path: Path) -> Fault:
        if keyword_of(error) == "additionalProperties" and isinstance(found, dict):  # how it says that no name is known
            return self.unknown(error, found, path)
        return Fault(_NOTHING, found, path)

    def unknown(self, error: ValidationError, found: Any, path: Path) -> Fault:
        unexpected: list[str] = error.kind.as_dict().get("unexpected", list(found))
        known = [name for name in self._node(error).get("properties", {}) if path or name not in self._hidden]
        named: Any = unexpected[0] if len(unexpected) == 1 else unexpected
        return Fault(f"only known properties: {_listed(known) or 'none at all'}", named, path)

    def name(self, error: ValidationError, found: Any, path: Path) -> Fault:
        inner = error.kind.as_dict()["error"]
        return _Teller(self._schema, inner.instance, place=path).fault([inner])

    def union(self, error: ValidationError, found: Any, path: Path) -> Fault:
        branches: list[list[ValidationError]] = error.kind.as_dict()["context"]
        accepted = sum(not branch for branch in branches)
        if accepted:
            return Fault(f"only one of {len(branches)} forms, not {accepted}", found, path)
        return _nearest([self.fault(branch) for branch in branches], found, path)


_SPECIAL: dict[str, Callable[[_Teller, ValidationError, Any, Path], Fault]] = {
    "falseSchema": _Teller.nothing,
    "additionalProperties": _Teller.unknown,
    "propertyNames": _Teller.name,
    "anyOf": _Teller.union,
    "oneOf": _Teller.union,
}


def _followed(place: Any, keys: list[str | int]) -> tuple[Any, Path]:
    """What the keys lead to, and the keys as they are: the library gives a name of digits as a number (`"007"` as 7)."""
    path: list[str | int] = []
    for key in keys:
        if isinstance(place, dict) and isinstance(key, int):
            key = str(key) if str(key) in place else next(name for name in place if re.fullmatch(rf"\+?0*{key}", name))
        place = place[key]
        path.append(key)
    return place, tuple(path)


def keyword_of(error: ValidationError) -> str:
    """The keyword that an error is about."""
    return str(error.schema_path[-1]) if error.schema_path else ""


def _nearest(faults: list[Fault], value: Any, path: Path) -> Fault:
    """The one fault that tells most about a union that accepts nothing: the deepest if it stands alone, else all forms."""
    deepest = max(len(fault.path) for fault in faults)
    telling = [fault for fault in faults if len(fault.path) == deepest]
    if len(telling) == 1 and deepest > len(path):
        return telling[0]
    forms = dict.fromkeys(fault.expected for fault in faults if len(fault.path) == len(path))
    return Fault(" or ".join(forms) or "one of several forms", value, path)


def _missing(node: JsonObject, found: Any) -> str:
    return f"the required {_listed([name for name in node['required'] if name not in found])}"


def _dependent(node: JsonObject, found: Any) -> str:
    needs = node["dependentRequired"]
    return f"also {_listed([name for given in needs if given in found for name in needs[given] if name not in found])}"


def _counted(node: JsonObject, found: Any) -> str:
    least, most = node.get("minContains", 1), node.get("maxContains")
    return f"at least {least:.0f} items of a certain kind{f', and at most {most:.0f}' if most is not None else ''}"


def _types(node: JsonObject, found: Any) -> str:
    names = node["type"]
    return " or ".join(noun(name) for name in ([names] if isinstance(names, str) else names))


def _limit(keyword: str, words: str) -> Callable[[JsonObject, Any], str]:
    return lambda node, found: words.format(node[keyword])


def _other(node: JsonObject, found: Any) -> str:
    return "a value that the schema does not exclude"


def _listed(names: list[str]) -> str:
    return shortened(", ".join(names))


_WORDS: dict[str, Callable[[JsonObject, Any], str]] = {
    "type": _types,
    "const": lambda node, found: values([node["const"]]),
    "enum": lambda node, found: values(node["enum"]) if node["enum"] else _NOTHING,
    "minLength": _limit("minLength", "a string of at least {:.0f} characters"),
    "maxLength": _limit("maxLength", "a string of at most {:.0f} characters"),
    "pattern": lambda node, found: f"a string that matches the pattern {shortened(node['pattern'])}",
    "minimum": _limit("minimum", "a number not below {}"),
    "maximum": _limit("maximum", "a number not above {}"),
    "exclusiveMinimum": _limit("exclusiveMinimum", "a number above {}"),
    "exclusiveMaximum": _limit("exclusiveMaximum", "a number below {}"),
    "multipleOf": _limit("multipleOf", "a multiple of {}"),
    "minItems": _limit("minItems", "an array of at least {:.0f} items"),
    "maxItems": _limit("maxItems", "an array of at most {:.0f} items"),
    "minProperties": _limit("minProperties", "an object of at least {:.0f} properties"),
    "maxProperties": _limit("maxProperties", "an object of at most {:.0f} properties"),
    "required": _missing,
    "dependentRequired": _dependent,
    "contains": _counted,
    "minContains": _counted,
    "maxContains": _counted,
    "uniqueItems": lambda node, found: "items that all differ",
    "not": _other,
}
_ORDER = {keyword: rank for rank, keyword in enumerate(_WORDS)}


def _precedence(error: ValidationError) -> tuple[int, int]:
    """Errors further out come first; at one place in the order above, then what is unknown there, then its unions."""
    return len(error.instance_path), _ORDER.get(keyword_of(error), len(_ORDER))
