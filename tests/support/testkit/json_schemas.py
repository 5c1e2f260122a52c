"""JSON Schemas and values for property-based tests: of the kind that OpenEnv servers publish, and wilder ones."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from openenv_client.frames import JsonObject
from openenv_gateway.mapping.references import TYPES

NAMES = st.sampled_from(["move", "column", "row", "text", "values", "depth_2", "metadata"])
ODD_NAMES = st.sampled_from(["move", "_private", "$id", "a.b", "a b", "9lives", "ключ", "private", "-"])
WORDS = st.sampled_from(["", "a", "up", "down", "e2e4", "true", "7", "null", "[1]"])
NUMBERS = st.one_of(st.integers(-5, 5), st.sampled_from([-1.5, 0.5, 2.0, 1e300, 10**30]))
VALUES: SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


def action_schemas(names: SearchStrategy[str] = NAMES) -> SearchStrategy[JsonObject]:
    """Root objects as pydantic writes them: limits, enums, constants, unions, nullables, lists, nested and referenced classes.

    Every keyword in them can be kept when it is advertised.
    """
    inner = _nested(names, refer=False).map(lambda schema: {"Inner": schema})
    return st.builds(_rooted, _objects(_nested(names), names), inner)


@st.composite
def any_schemas(draw: st.DrawFn) -> JsonObject:
    """Schemas with every keyword that the validator knows, satisfiable or not."""
    return {**draw(_wild(2)), "$defs": {"Leaf": draw(_wild(0)), "Tree": TREE}}


TREE: JsonObject = {
    "type": "object",
    "properties": {"value": {"type": "integer"}, "children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}},
    "required": ["value"],
}


def trees() -> SearchStrategy[JsonObject]:
    """Values of the recursive definition in `any_schemas`: `{"value": 1, "children": [...]}`."""
    leaf = st.fixed_dictionaries({"value": st.integers(-5, 5)})
    return st.recursive(
        leaf,
        lambda inner: st.fixed_dictionaries({"value": st.integers(-5, 5), "children": st.lists(inner, max_size=2)}),
        max_leaves=10,
    )


def _rooted(root: JsonObject, definitions: JsonObject) -> JsonObject:
    return {**root, "$defs": definitions, "title": "SomeAction", "description": "Does something."}


def _nested(names: SearchStrategy[str], refer: bool = True) -> SearchStrategy[JsonObject]:
    leaves = _leaves() | (st.just({"$ref": "#/$defs/Inner", "description": "Another class."}) if refer else st.nothing())
    return st.recursive(leaves, lambda inner: _containers(inner, names), max_leaves=5)


def _leaves() -> SearchStrategy[JsonObject]:
    strings = st.builds(
        lambda low, extra: {"type": "string", "minLength": low, "maxLength": low + extra}, st.integers(0, 2), st.integers(0, 5)
    )
    integers = st.builds(
        lambda low, extra: {"type": "integer", "minimum": low, "maximum": low + extra}, st.integers(-3, 3), st.integers(0, 5)
    )
    numbers = st.just({"type": "number", "exclusiveMinimum": 0}) | st.just({"type": "number", "multipleOf": 0.5})
    kinds: list[JsonObject] = [{"type": name} for name in ("string", "boolean", "null")]
    plain = st.sampled_from([*kinds, {"type": "integer", "title": "Some Number"}])
    enums = st.lists(WORDS, min_size=1, max_size=3, unique=True).map(lambda words: {"enum": words})
    some = st.lists(st.integers(-3, 3), min_size=1, max_size=3, unique=True)
    numbered = some.map(lambda found: {"type": "integer", "enum": found})
    constants = st.one_of(WORDS, st.integers(0, 3), st.booleans(), st.none()).map(lambda value: {"const": value})
    lists = st.just({"type": ["integer", "string"], "minimum": 0, "minLength": 1})
    return st.one_of(strings, integers, numbers, plain, enums, numbered, constants, lists)


def _containers(inner: SearchStrategy[JsonObject], names: SearchStrategy[str]) -> SearchStrategy[JsonObject]:
    return st.one_of(
        inner.map(lambda schema: {"type": "array", "items": schema, "minItems": 1, "maxItems": 3}),
        inner.map(lambda schema: {"anyOf": [schema, {"type": "null"}], "default": None}),
        inner.map(lambda schema: {"allOf": [schema], "description": "Wrapped."}),
        st.lists(inner, min_size=1, max_size=3).map(lambda branches: {"anyOf": branches}),
        _objects(inner, names),
    )


@st.composite
def _objects(draw: st.DrawFn, inner: SearchStrategy[JsonObject], names: SearchStrategy[str]) -> JsonObject:
    properties = draw(st.dictionaries(names, inner, max_size=3))
    required = draw(st.sets(st.sampled_from(sorted(properties)))) if properties else set()
    closed: JsonObject = draw(st.sampled_from([{}, {"additionalProperties": False}, {"additionalProperties": True}]))
    return {"type": "object", "properties": properties, "required": sorted(required), **closed}


@st.composite
def _wild(draw: st.DrawFn, depth: int) -> JsonObject:
    below: SearchStrategy[Any] = st.booleans()
    if depth:
        below |= _wild(depth - 1) | st.sampled_from([{"$ref": "#/$defs/Leaf"}, {"$ref": "#/$defs/Tree"}])
    names = sorted(_WILD) if depth else sorted(_WILD.keys() - {"$ref"})  # a leaf that refers to itself means nothing
    keywords = draw(st.lists(st.sampled_from(names), max_size=3, unique=True))
    return {keyword: draw(_WILD[keyword](below)) for keyword in keywords}


_SIZES = st.integers(0, 3)
_WILD: dict[str, Any] = {
    "type": lambda below: st.sampled_from([*TYPES, ["integer", "null"]]),
    "enum": lambda below: st.lists(VALUES, max_size=3),
    "const": lambda below: VALUES,
    **{name: (lambda below: NUMBERS) for name in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")},
    "multipleOf": lambda below: st.sampled_from([1, 2, 0.5, 0.25]),  # `jsonschema` reads fractions as binary, not as decimal
    **{f"{end}{what}": (lambda below: _SIZES) for end in ("min", "max") for what in ("Length", "Items", "Properties")},
    "pattern": lambda below: st.sampled_from(["^a", "[0-9]+$", "^(up|down)?$"]),
    "properties": lambda below: st.dictionaries(NAMES, below, max_size=2),
    "patternProperties": lambda below: st.dictionaries(st.sampled_from(["^m", "w$"]), below, max_size=2),
    "additionalProperties": lambda below: below,
    "propertyNames": lambda below: below,
    "required": lambda below: st.lists(NAMES, max_size=2),
    "dependentRequired": lambda below: st.dictionaries(NAMES, st.lists(NAMES, max_size=2), max_size=2),
    "dependentSchemas": lambda below: st.dictionaries(NAMES, below, max_size=2),
    "items": lambda below: below,
    "prefixItems": lambda below: st.lists(below, min_size=1, max_size=2),
    "contains": lambda below: below,
    "minContains": lambda below: _SIZES,
    "maxContains": lambda below: _SIZES,
    "uniqueItems": lambda below: st.booleans(),
    "allOf": lambda below: st.lists(below, min_size=1, max_size=2),
    "anyOf": lambda below: st.lists(below, min_size=1, max_size=3),
    "oneOf": lambda below: st.lists(below, min_size=1, max_size=3),
    "not": lambda below: below,
    "if": lambda below: below,
    "then": lambda below: below,
    "else": lambda below: below,
    "$ref": lambda below: st.sampled_from(["#/$defs/Leaf", "#/$defs/Tree"]),
}


def instances_of(schema: Any, root: JsonObject) -> SearchStrategy[Any]:
    """Values that satisfy a schema of the kind that `action_schemas` makes or that is advertised; `root` has its `$defs`.

    Nothing if it is unsatisfiable. Objects get further keys where the schema does not forbid them."""
    if schema is True:
        return VALUES
    for keyword, make in _INSTANCES.items():
        if keyword in schema:
            found: SearchStrategy[Any] = make(schema, root)
            return found
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return st.one_of([_OF_TYPE[kind](schema, root) for kind in kinds])


def _strings(schema: JsonObject, root: JsonObject) -> SearchStrategy[Any]:
    return st.text(st.sampled_from('ab1"é ['), min_size=schema.get("minLength", 0), max_size=schema.get("maxLength"))


def _integers(schema: JsonObject, root: JsonObject) -> SearchStrategy[Any]:
    return st.integers(schema.get("minimum"), schema.get("maximum"))


def _numbers(schema: JsonObject, root: JsonObject) -> SearchStrategy[Any]:
    if "multipleOf" in schema:
        return st.integers(-9, 9).map(lambda count: count * schema["multipleOf"])
    low = schema.get("exclusiveMinimum")
    return st.floats(low, 1e9, exclude_min=low is not None, allow_nan=False) if low is not None else st.floats(-1e9, 1e9)


def _arrays(schema: JsonObject, root: JsonObject) -> SearchStrategy[Any]:
    items = instances_of(schema["items"], root)
    least = schema.get("minItems", 0)
    return st.lists(items, min_size=least, max_size=schema.get("maxItems", least + 2))


def _maps(schema: JsonObject, root: JsonObject) -> SearchStrategy[Any]:
    properties = {name: instances_of(child, root) for name, child in schema["properties"].items()}
    required = set(schema.get("required", ()))
    known = st.fixed_dictionaries(
        {name: made for name, made in properties.items() if name in required},
        optional={name: made for name, made in properties.items() if name not in required},
    )
    if schema.get("additionalProperties", True) is False:
        return known
    return st.builds(lambda more, own: {**more, **own}, st.dictionaries(st.just("further key"), VALUES), known)


_OF_TYPE: dict[str, Any] = {
    "string": _strings,
    "integer": _integers,
    "number": _numbers,
    "boolean": lambda schema, root: st.booleans(),
    "null": lambda schema, root: st.none(),
    "array": _arrays,
    "object": _maps,
}
_INSTANCES: dict[str, Any] = {
    "$ref": lambda schema, root: instances_of(root["$defs"][schema["$ref"].rpartition("/")[2]], root),
    "const": lambda schema, root: st.just(schema["const"]),
    "enum": lambda schema, root: st.sampled_from(schema["enum"]),
    "anyOf": lambda schema, root: st.one_of([instances_of(branch, root) for branch in schema["anyOf"]]),
    "allOf": lambda schema, root: instances_of(schema["allOf"][0], root),
}
