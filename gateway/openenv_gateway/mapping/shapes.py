"""How an object is shown to hosts: under which names its properties go, and how keys beyond them can still be given. Pure.

Both directions go by this one file: `schemas` advertises the shape, `fitting` turns arguments given in it back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from openenv_client.frames import JsonObject
from openenv_gateway.mapping.alternatives import Alternative
from openenv_gateway.mapping.naming import free_name, property_names
from openenv_gateway.mapping.references import Schema

ESCAPE = "options_json"
"""The argument that takes whatever else an open object accepts, as a JSON object in a string: strict hosts close objects."""


@dataclass(frozen=True, slots=True)
class Shape:
    """`names`: advertised name → original name. `properties`: original name → schema. `required`: original names. `escape`:
    the name of the argument for further keys, advertised if the object is `open`, understood anyway."""

    names: dict[str, str]
    properties: dict[str, Schema]
    required: frozenset[str]
    escape: str
    open: bool

    @property
    def translates(self) -> bool:
        """Whether arguments in this shape differ from what the environment takes."""
        return self.open or any(name != original for name, original in self.names.items())


def shape_of(keywords: JsonObject) -> Shape:
    """The shape of an object from its keywords (of one alternative, see `alternatives`)."""
    required = keywords.get("required", [])
    properties = {**keywords.get("properties", {})}
    properties |= {name: True for name in required if name not in properties}
    names = property_names(properties)
    return Shape(
        names=names,
        properties=properties,
        required=frozenset(required),
        escape=free_name(ESCAPE, names),
        open=_is_open(keywords),
    )


def _is_open(keywords: JsonObject) -> bool:
    """Whether keys beyond the declared ones are meant to be given. A class that merely does not forbid them is not open."""
    rest = keywords.get("additionalProperties")
    return rest is True or isinstance(rest, dict) or bool(keywords.get("patternProperties")) or _says_nothing(keywords)


def _says_nothing(keywords: JsonObject) -> bool:
    return "properties" not in keywords and "additionalProperties" not in keywords


def joined(forms: Iterable[Alternative]) -> JsonObject:
    """The keywords of one object that accepts what any of several forms accepts, for a root that may not be a union."""
    result: JsonObject = {}
    for keywords in (form.keywords for form in forms):
        result = _either(result, keywords) if result else dict(keywords)
    return result


def without(keywords: JsonObject, hidden: Callable[[str, Schema], bool]) -> JsonObject:
    """The keywords of the object without the properties that are not advertised."""
    properties = {name: child for name, child in keywords.get("properties", {}).items() if not hidden(name, child)}
    gone = keywords.get("properties", {}).keys() - properties.keys()
    required = [name for name in keywords.get("required", ()) if name not in gone]
    return {**keywords, "required": required, **({"properties": properties} if "properties" in keywords else {})}


def _either(first: JsonObject, second: JsonObject) -> JsonObject:
    properties = {**first.get("properties", {})}
    for name, child in second.get("properties", {}).items():
        properties[name] = {"anyOf": [properties[name], child]} if properties.get(name, child) != child else child
    merged: JsonObject = {"type": "object", **{key: first[key] for key in ("description", "title") if key in first}}
    merged["properties"] = properties
    merged["required"] = [name for name in first.get("required", ()) if name in second.get("required", ())]
    merged["additionalProperties"] = _is_open(first) or _is_open(second)
    return merged
