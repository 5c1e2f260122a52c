"""What JSON means by a type and by equality, which is not what Python means: true is not 1, and 1.0 is 1. Pure."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any


def type_of(value: Any) -> str:
    """The narrowest JSON Schema type of a decoded JSON value; a whole number is an integer, however it is written."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "integer" if isinstance(value, int) or value.is_integer() else "number"
    if isinstance(value, str):
        return "string"
    return "object" if isinstance(value, dict) else "array"


def identity(value: Any) -> Hashable:
    """A key that is equal for JSON values that are equal, and for no others."""
    if isinstance(value, bool):
        return ("boolean", value)
    if isinstance(value, dict):
        return frozenset((key, identity(item)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return ("array", *(identity(item) for item in value))
    return value  # type: ignore[no-any-return]  # a number, a string or None: Python's equality is JSON's here
