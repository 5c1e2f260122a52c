"""A union of actions, taken apart: each variant becomes a tool of its own, whose discriminator the gateway fills in. Pure.

Hosts do not accept a union at the root of a schema, and a model chooses better among named tools than among forms of one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from openenv_client.frames import JsonObject
from openenv_gateway.mapping.alternatives import Alternatives
from openenv_gateway.mapping.equality import identity
from openenv_gateway.mapping.naming import words_of
from openenv_gateway.mapping.references import Document, Schema
from openenv_gateway.mapping.shapes import joined

_ABOUT_UNION = frozenset({"anyOf", "oneOf", "discriminator", "$defs", "definitions", "title", "description", "$schema", "$id"})


@dataclass(frozen=True, slots=True)
class Variant:
    """One branch of a union of actions: its name (not yet a tool's), the schema that decides, its prose, and the
    discriminator with its value, if it has one."""

    name: str
    schema: JsonObject
    description: str | None
    fill: Mapping[str, Any] = field(default_factory=dict)


def variants_of(document: Document) -> list[Variant]:
    """The variants of an action schema; empty if it is no union of at least two objects with properties."""
    alternatives = Alternatives(document)
    node = _root(document)
    union: list[Schema] = node.get("oneOf") or node.get("anyOf") or []
    branches = [branch for branch in union if _is_object(branch, alternatives)]
    if len(branches) < 2:
        return []
    keywords = [joined(alternatives.of(branch)) for branch in branches]
    if not all(one.get("properties") for one in keywords):
        return []  # mere conditions on one object, such as "a or b is required"
    common = {key: value for key, value in node.items() if key not in _ABOUT_UNION}
    fills = _fills(node, branches, keywords, alternatives)
    return [
        Variant(
            name=_name(fill, one, branch, index),
            schema={"allOf": [common, branch]},
            description=one.get("description"),
            fill=fill,
        )
        for index, (branch, one, fill) in enumerate(zip(branches, keywords, fills, strict=True))
    ]


def _root(document: Document) -> JsonObject:
    """The root, or what it refers to. `alternatives` has already refused references that go in circles."""
    node: Schema = document.root
    Alternatives(document).of(node)
    while isinstance(node, dict) and "$ref" in node and "oneOf" not in node and "anyOf" not in node:
        node = document.follow(node["$ref"])
    return node if isinstance(node, dict) else {}


def _is_object(branch: Schema, alternatives: Alternatives) -> bool:
    types = {form.type for form in alternatives.of(branch)}
    return types == {"object"}


def _fills(
    node: JsonObject, branches: list[Schema], keywords: list[JsonObject], alternatives: Alternatives
) -> list[dict[str, Any]]:
    """Per branch the discriminator and its value: the property that has one fixed value in each branch, and never the same."""
    declared = node.get("discriminator")
    declared = declared if isinstance(declared, dict) else {}
    names = [declared["propertyName"]] if isinstance(declared.get("propertyName"), str) else list(keywords[0]["properties"])
    for name in names:
        values = [_fixed(one["properties"].get(name), alternatives) for one in keywords]
        if all(len(value) == 1 for value in values) and len({identity(value[0]) for value in values}) == len(values):
            return [{name: value[0]} for value in values]
    return [_mapped(declared, branch) for branch in branches]


def _fixed(schema: Schema | None, alternatives: Alternatives) -> list[Any]:
    if schema is None:
        return []
    return [value for form in alternatives.of(schema) for value in form.keywords.get("enum", [None, None])]


def _mapped(declared: JsonObject, branch: Schema) -> dict[str, Any]:
    """The value that OpenAPI's `discriminator.mapping` gives to a branch which does not fix it itself."""
    mapping, name = declared.get("mapping"), declared.get("propertyName")
    if not isinstance(mapping, dict) or not isinstance(name, str) or not isinstance(branch, dict):
        return {}
    values = [value for value, reference in mapping.items() if reference == branch.get("$ref")]
    return {name: values[0]} if len(values) == 1 else {}


def _name(fill: dict[str, Any], keywords: JsonObject, branch: Schema, index: int) -> str:
    if fill:
        return str(next(iter(fill.values())))
    reference = branch.get("$ref", "") if isinstance(branch, dict) else ""
    title = keywords.get("title") or reference.rpartition("/")[2] or f"variant {index + 1}"
    return "_".join(words_of(title)).removesuffix("_action") or f"variant_{index + 1}"
