"""A JSON Schema rewritten so that every host accepts it. Pure.

Hosts and frameworks convert schemas for their models, and one that a converter refuses often hides the whole tool list. The
advertised schema therefore uses the least common form: objects with `properties`, single types, `anyOf`, `enum`, limits; no
references, no composition at the root, no booleans, no empty schemas, no tuples, names of letters, digits and underscores.
It accepts at least what the original accepts, save for what is said below; the original decides (see `contract`).

Narrower than the original, on purpose: recursion is shown MAX_LEVELS deep, after which any object, or its JSON text, stands
for the rest; arrays without `items` are shown with items that are no arrays; keys that hosts refuse go under other names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from openenv_client.frames import JsonObject
from openenv_gateway.mapping.alternatives import Alternative, Alternatives
from openenv_gateway.mapping.docstrings import split_docstring
from openenv_gateway.mapping.equality import identity
from openenv_gateway.mapping.patterns import is_portable
from openenv_gateway.mapping.references import Document, Schema
from openenv_gateway.mapping.shapes import Shape, shape_of
from openenv_gateway.mapping.wording import default_of, described, inherited_description, kind_of

MAX_LEVELS = 3
"""How many levels of a recursive definition are shown; fewer if the whole would pass MAX_PARTS."""
MAX_PARTS = 2_000
"""Schemas in one advertised schema, everything inlined."""

_LIMITS = {
    "string": ("minLength", "maxLength"),
    "integer": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "array": ("minItems", "maxItems"),
}
_ENUMERABLE = ("string", "integer", "number", "boolean")
_WHOLE_WORDS = "The keys and values of this object, as a JSON object in a string."
_ESCAPE_WORDS = "A JSON object in a string, with any further {what} that are not listed here."

Path = tuple[str, ...]


class _TooBig(Exception):
    """The schema, everything inlined, passes MAX_PARTS."""


@dataclass(frozen=True, slots=True)
class Advertised:
    """`schema` is the inputSchema. `translates`: arguments given by it may differ from what the environment takes (other
    names, an escape for further keys), so that they have to be translated even if they look right."""

    schema: JsonObject
    translates: bool


def advertise(document: Document, alternatives: Alternatives, keywords: JsonObject, noun: str = "keys") -> Advertised:
    """What to advertise for the root object with these keywords (see `shapes.joined`).

    `noun` is what its further keys are called. Raises UnusableSchema if it passes MAX_PARTS even with recursion shown once.
    """
    for levels in range(MAX_LEVELS, 0, -1):
        rewriter = _Rewriter(alternatives, levels)
        try:
            return Advertised(rewriter.object(keywords, (), noun), rewriter.translates)
        except _TooBig:
            continue
    raise document.unusable(f"with all references inlined it has more than {MAX_PARTS} parts")


class _Rewriter:
    """One run over a schema. `path` holds the references followed from the root, to see recursion."""

    def __init__(self, alternatives: Alternatives, levels: int) -> None:
        self._alternatives = alternatives
        self._levels = levels
        self._parts = 0
        self.translates = False

    def object(self, keywords: JsonObject, path: Path, noun: str = "keys") -> JsonObject:
        shape = shape_of(keywords)
        self.translates |= shape.translates
        attributes = split_docstring(keywords.get("description", ""))[1]
        properties = {}
        for name, original in shape.names.items():
            shown = self._property(original, shape.properties[original], attributes.get(original), path)
            if shown is not None:
                properties[name] = shown
        required = [name for name in properties if shape.names[name] in shape.required]
        if shape.open:
            properties[shape.escape] = self._escape(shape, keywords, noun)
        return {"type": "object", "properties": properties, **({"required": required} if required else {})}

    def _property(self, name: str, schema: Schema, attribute: str | None, path: Path) -> JsonObject | None:
        """The property with its description; None for one that no value satisfies."""
        schema = {} if schema is True else schema
        shown = self._schema(schema, path)
        if shown is None or isinstance(schema, bool):
            return None
        said = schema.get("description") or attribute or inherited_description(schema, self._alternatives)
        shown["description"] = described(_prose(said), name, schema.get("title"), self._alternatives, schema)
        default = default_of(schema)
        if _is_plain(default):
            shown["default"] = default
        return shown

    def _escape(self, shape: Shape, keywords: JsonObject, noun: str) -> JsonObject:
        rest = keywords.get("additionalProperties")
        words = _ESCAPE_WORDS.format(what=noun) if shape.names else _WHOLE_WORDS
        if isinstance(rest, dict) and rest:
            words += f" Each is {kind_of(self._alternatives, rest)}."
        return {"type": "string", "description": words}

    def _schema(self, schema: Schema, path: Path) -> JsonObject | None:
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise _TooBig
        forms = self._alternatives.of(schema)
        shown: dict[Any, JsonObject] = {}
        for form in forms:
            branch = self._form(form, path, described=len(forms) > 1)
            shown[identity(branch)] = branch
        branches = list(shown.values())
        return {"anyOf": branches} if len(branches) > 1 else branches[0] if branches else None

    def _form(self, form: Alternative, path: Path, described: bool) -> JsonObject:
        self._parts += 1
        path += form.references
        if any(path.count(reference) > self._levels for reference in form.references):
            return self._cut(form.type, path)
        branch = self._branch(form, path)
        if described and form.type == "object" and isinstance(form.keywords.get("description"), str):
            branch["description"] = _prose(form.keywords["description"])
        return branch

    def _branch(self, form: Alternative, path: Path) -> JsonObject:
        keywords = form.keywords
        if form.type == "object":
            return self.object(keywords, path)
        shown: JsonObject = {"type": form.type}
        shown |= {key: keywords[key] for key in _LIMITS.get(form.type, ()) if key in keywords and not _is_flag(keywords[key])}
        if "enum" in keywords and form.type in _ENUMERABLE:
            shown["enum"] = keywords["enum"]
        if "pattern" in keywords and is_portable(keywords["pattern"]):
            shown["pattern"] = keywords["pattern"]
        if form.type == "array":
            shown["items"] = self._items(keywords, path) or self._any_item(path)
        return shown

    def _items(self, keywords: JsonObject, path: Path) -> JsonObject | None:
        """One schema for all items: of a tuple, whatever may stand at any place."""
        heads, rest = keywords.get("prefixItems", []), keywords.get("items", True)
        if len(heads) >= keywords.get("maxItems", len(heads) + 1):
            rest = False
        kinds = [*heads, *([rest] if rest is not False else [])]
        if any(kind is True or kind == {} for kind in kinds):
            return None
        return self._schema(kinds[0] if len(kinds) == 1 else {"anyOf": kinds}, path)

    def _any_item(self, path: Path) -> JsonObject:
        """An item of which nothing is known. No array: that would have to say of its own items what they are."""
        kinds: list[JsonObject] = [{"type": name} for name in ("string", "number", "boolean", "null")]
        return {"anyOf": [*kinds, self.object({"type": "object"}, path)]}

    def _cut(self, name: str, path: Path) -> JsonObject:
        """What stands for a recursive value beyond the levels shown: any object, which takes its JSON text as well."""
        if name == "object":
            self.translates = True
            return {**self.object({"type": "object"}, path), "description": "The same again, one level deeper."}
        return {"type": "array", "items": self._any_item(path)} if name == "array" else {"type": name}


def _prose(said: object) -> str | None:
    return split_docstring(said)[0] if isinstance(said, str) else None


def _is_plain(default: Any) -> bool:
    """Whether a default may be advertised as such: words and numbers; anything else is only told in words."""
    return isinstance(default, str | int | float)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)  # draft 4's exclusiveMinimum
