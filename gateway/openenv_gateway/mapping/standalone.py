"""A part of a document as one schema that stands alone: standard JSON Schema 2020-12, with all that its references need. Pure.

Everything that only describes is left out, and so is what the environment alone can decide: `format`, patterns that this
gateway's engine cannot compile, `unevaluatedProperties` and `unevaluatedItems`, keywords that are not in the standard. The
older forms that `read_document` lets pass are rewritten. What comes out always compiles.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from openenv_client.frames import JsonObject
from openenv_gateway.mapping.references import Document, Schema

if TYPE_CHECKING:
    import jsonschema_rs

MAX_PATTERN = 1 << 20
"""Bytes that one compiled regular expression may need. A larger one is left to the environment."""


def compiled(schema: Schema) -> jsonschema_rs.Validator:
    """The library's validator. Its patterns take time that is linear in the text: no look-around, no references back.

    Nothing is fetched: `offline` forbids it, and what `Rewriter` makes refers only to itself. Raises ValueError for a schema
    that is not well formed."""
    import jsonschema_rs  # noqa: PLC0415  # 16 ms, which an agent's first call can spare and the gateway's start cannot

    patterns = jsonschema_rs.RegexOptions(size_limit=MAX_PATTERN)
    return jsonschema_rs.Draft202012Validator(schema, validate_formats=False, offline=True, pattern_options=patterns)


@lru_cache(maxsize=1000)
def is_readable(pattern: str) -> bool:
    """Whether the library can compile a regular expression."""
    try:
        compiled({"pattern": pattern})
    except ValueError:
        return False
    return True


class Rewriter:
    """Makes parts of one document stand alone. Each definition is rewritten once."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._definitions: dict[str, _Piece] = {}
        self._names: dict[str, str] = {}

    def standalone(self, schema: Schema) -> tuple[Schema, int]:
        """The schema with its definitions under `$defs`, and of how many schemas it consists."""
        root = _Piece(schema, self._name)
        waiting, definitions, parts = [*root.references], {}, root.parts
        while waiting:
            reference = waiting.pop()
            name = self._name(reference)
            if name not in definitions:
                piece = self._definition(reference)
                definitions[name] = piece.schema
                waiting += piece.references
                parts += piece.parts
        if isinstance(root.schema, bool):
            return root.schema, parts
        return {**root.schema, "$defs": definitions}, parts

    def _definition(self, reference: str) -> _Piece:
        if reference not in self._definitions:
            self._definitions[reference] = _Piece(self._document.follow(reference), self._name)
        return self._definitions[reference]

    def _name(self, reference: str) -> str:
        return self._names.setdefault(reference, str(len(self._names)))


class _Piece:
    """One schema rewritten, with the `references` in it and the number of its `parts`."""

    def __init__(self, schema: Schema, name: Callable[[str], str]) -> None:
        self._name = name
        self.references: list[str] = []
        self.parts = 0
        self.schema = self._rewritten(schema)

    def _rewritten(self, schema: Schema) -> Schema:
        self.parts += 1
        if isinstance(schema, bool):
            return schema
        result = {keyword: _KEPT[keyword](value) for keyword, value in schema.items() if keyword in _KEPT}
        result |= {keyword: self._rewritten(schema[keyword]) for keyword in _ONE if keyword in schema}
        result |= {keyword: self._list(schema[keyword] or [empty]) for keyword, empty in _LISTS.items() if keyword in schema}
        result |= {keyword: self._map(schema[keyword]) for keyword in _MAPS if keyword in schema}
        for rewrite in (self._refer, self._bound, self._match, self._itemize):
            rewrite(schema, result)
        return result

    def _list(self, schemas: list[Schema]) -> list[Schema]:
        return [self._rewritten(child) for child in schemas]

    def _map(self, schemas: dict[str, Schema]) -> dict[str, Schema]:
        return {name: self._rewritten(child) for name, child in schemas.items()}

    def _refer(self, schema: JsonObject, result: JsonObject) -> None:
        if "$ref" in schema:
            self.references.append(schema["$ref"])
            result["$ref"] = f"#/$defs/{self._name(schema['$ref'])}"

    def _bound(self, schema: JsonObject, result: JsonObject) -> None:
        for keyword in ("exclusiveMinimum", "exclusiveMaximum"):
            if not isinstance(schema.get(keyword, True), bool):  # draft 4 has true and false there
                result[keyword] = schema[keyword]

    def _match(self, schema: JsonObject, result: JsonObject) -> None:
        """Patterns that can be read. One that cannot might match any name, so that no name is surely unknown."""
        if "pattern" in schema and is_readable(schema["pattern"]):
            result["pattern"] = schema["pattern"]
        patterns = schema.get("patternProperties", {})
        readable = {pattern: child for pattern, child in patterns.items() if is_readable(pattern)}
        if readable:
            result["patternProperties"] = self._map(readable)
        if len(readable) < len(patterns):
            result.pop("additionalProperties", None)

    def _itemize(self, schema: JsonObject, result: JsonObject) -> None:
        rest = schema.get("items", True)
        if isinstance(rest, list):  # how tuples were written before 2020-12
            result["prefixItems"] = self._list(rest or [True])
            rest = schema.get("additionalItems", True)
        if rest is not True:
            result["items"] = self._rewritten(rest)


def _same(value: Any) -> Any:
    return value


def _once(names: list[str]) -> list[str]:
    return list(dict.fromkeys(names))


_KEPT: dict[str, Callable[[Any], Any]] = {
    **{name: _same for name in ("enum", "const", "minimum", "maximum", "multipleOf")},
    **{f"{end}{what}": _same for end in ("min", "max") for what in ("Length", "Items", "Properties", "Contains")},
    "type": lambda names: names if isinstance(names, str) else _once(names),
    "required": _once,
    "dependentRequired": lambda needs: {name: _once(names) for name, names in needs.items()},
    "uniqueItems": bool,
}
_ONE = ("additionalProperties", "propertyNames", "contains", "not", "if", "then", "else")
_LISTS = {"allOf": True, "anyOf": False, "oneOf": False, "prefixItems": True}
"""Keyword → the one schema in it that an empty list amounts to: the standard wants at least one."""
_MAPS = ("properties", "dependentSchemas")
