"""Limits and defaults of a schema in words: what a description repeats, because hosts drop the keywords themselves. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from openenv_client.frames import JsonObject
from openenv_gateway.mapping.alternatives import Alternative, Alternatives
from openenv_gateway.mapping.faults import noun, shortened, values
from openenv_gateway.mapping.naming import sentence_of
from openenv_gateway.mapping.references import Schema

MAX_WORDS = 300
"""Characters of one default or pattern in a description."""

_BOUNDS = (
    ("minimum", "at least {}"),
    ("exclusiveMinimum", "more than {}"),
    ("maximum", "at most {}"),
    ("exclusiveMaximum", "less than {}"),
    ("multipleOf", "a multiple of {}"),
    ("pattern", "matching the pattern {}"),
    ("format", "in the format {}"),
)
_SIZES = (("Length", "character", "characters"), ("Items", "item", "items"), ("Properties", "key", "keys"))


def described(said: str | None, name: str, title: object, alternatives: Alternatives, schema: Schema) -> str:
    """The description of a property: what the schema says, or else its name in words; then its limits and its default."""
    text = (said or "").strip() or sentence_of(title if isinstance(title, str) and title else name)
    if text[-1] not in ".!?:":
        text += "."
    limits = limits_of(alternatives, schema)
    default = default_of(schema)
    if limits:
        text += f" {limits[0].upper()}{limits[1:]}."
    if default is not None:
        text += f" Default: {shortened(json.dumps(default, ensure_ascii=False), MAX_WORDS)}."
    return text


def default_of(schema: Schema) -> Any:
    """The default that a schema states; None also for none, as optional arguments of OpenEnv actions have it."""
    return schema.get("default") if isinstance(schema, dict) else None


def limits_of(alternatives: Alternatives, schema: Schema) -> str:
    """The limits on a value in words, of every form that it may have; empty if there are none."""
    found = alternatives.of(schema)
    forms = [(form, phrases) for form in found if (phrases := ", ".join(_phrases(form, alternatives)))]
    if len(forms) == 1 and all(form.type == "null" or form is forms[0][0] for form in found):
        return forms[0][1]
    return "; ".join(f"{noun(form.type)}: {phrases}" for form, phrases in forms)


def _phrases(form: Alternative, alternatives: Alternatives) -> Iterable[str]:
    keywords = form.keywords
    if "enum" in keywords and form.type != "null":
        yield f"{'always ' if len(keywords['enum']) == 1 else ''}{values(keywords['enum'])}"
    for keyword, words in _BOUNDS:
        if keyword in keywords and not isinstance(keywords[keyword], bool):
            yield words.format(shortened(str(keywords[keyword]), MAX_WORDS))
    for what, one, many in _SIZES:
        yield from _size(keywords.get(f"min{what}"), keywords.get(f"max{what}"), one, many)
    if keywords.get("uniqueItems"):
        yield "no item twice"
    if "prefixItems" in keywords:
        kinds = (kind_of(alternatives, item) for item in keywords["prefixItems"])
        yield "in this order: " + ", ".join(f"{index}) {kind}" for index, kind in enumerate(kinds, 1))
    rest = keywords.get("additionalProperties")
    if isinstance(rest, dict) and rest:
        yield f"any keys, each with {kind_of(alternatives, rest)}"


def kind_of(alternatives: Alternatives, schema: Schema) -> str:
    """The types of a value in words: `an integer`, `a string or null`, `any value`."""
    names = list(dict.fromkeys(form.type for form in alternatives.of(schema)))
    if len(names) >= 6:
        return "any value"
    return " or ".join(noun(name) for name in names) or "no value"


def _size(low: float | None, high: float | None, one: str, many: str) -> Iterable[str]:
    unit = one if (high if high is not None else low) == 1 else many
    if low and low == high:
        yield f"exactly {low:g} {unit}"
    elif low and high is not None:
        yield f"{low:g} to {high:g} {unit}"
    elif low:
        yield f"at least {low:g} {unit}"
    elif high is not None:
        yield f"at most {high:g} {unit}"



def inherited_description(schema: JsonObject, alternatives: Alternatives) -> str | None:
    """What the one thing that a schema refers to or wraps says of itself; None if there is no such one thing."""
    forms = [form for form in alternatives.of(schema) if form.type != "null"]
    return forms[0].keywords.get("description") if len(forms) == 1 else None
