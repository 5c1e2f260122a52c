"""Reads the schemas that lie in this package."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any

SUFFIX = ".schema.json"


@cache
def names() -> tuple[str, ...]:
    """The names of all published schemas, sorted."""
    files = resources.files(__package__).iterdir()
    return tuple(sorted(file.name.removesuffix(SUFFIX) for file in files if file.name.endswith(SUFFIX)))


def load(name: str) -> dict[str, Any]:
    """One schema, freshly parsed. Raises KeyError, which lists the known names, for a name that is not in names()."""
    schema: dict[str, Any] = json.loads(raw(name))
    return schema


@cache
def raw(name: str) -> bytes:
    """One schema as the UTF-8 bytes of its file. Raises KeyError as `load` does."""
    if name not in names():
        raise KeyError(f"there is no schema {name!r}; known are {', '.join(names())}")
    return resources.files(__package__).joinpath(name + SUFFIX).read_bytes()
