"""Why a value does not satisfy a schema, and how much work may go into finding out. Pure.

Schemas come from environments and values from agents: neither may make a call hang, so every check spends from a budget.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from openenv_gateway.mapping.equality import type_of

WORK = 2_000_000
"""What one call may spend: a unit is the cost of one item of an array, at most 0.2 µs, so that a call ends within a second."""
BRANCH_WORK = 20
"""What reading a value as one form of its schema, or compiling one schema, costs at least."""

MAX_SHOWN = 200
"""Characters of a value that an error shows."""


class TooMuchWork(Exception):
    """The budget is spent: the value is too large, or the schema branches too often on it."""


class Budget:
    """Counts down the work of one call. `spend` raises TooMuchWork when nothing is left."""

    __slots__ = ("left",)

    def __init__(self, left: int = WORK) -> None:
        self.left = left

    def spend(self, work: int) -> None:
        self.left -= work
        if self.left < 0:
            raise TooMuchWork


@dataclass(frozen=True, slots=True)
class Fault:
    """The first thing that is wrong: `expected` at `path` (keys and indices from the root), where `found` came."""

    expected: str
    found: Any
    path: tuple[str | int, ...] = ()

    def under(self, key: str | int) -> Fault:
        """The same fault, seen from one level further out."""
        return replace(self, path=(key, *self.path))

    @property
    def place(self) -> str:
        """The path as people write it: `moves[0].column`; empty for the whole value."""
        text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in self.path)
        return shortened(text.removeprefix("."))


_NOUNS = {"array": "an array", "object": "an object", "integer": "an integer", "null": "null"}


def noun(name: str) -> str:
    """A type with its article: `an integer`, `a string`."""
    return _NOUNS.get(name, f"a {name}")


def values(listed: list[Any]) -> str:
    """The values of an enum as words, cut to a readable length."""
    texts = [json.dumps(value, ensure_ascii=False) for value in listed]
    text = shortened(", ".join(texts), 400)
    return text if len(texts) == 1 else f"one of {text}"


def shown(value: Any) -> str:
    """A value for an error message: its JSON, cut at MAX_SHOWN characters, and its type."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = f"a value that cannot be shown ({type(value).__name__})"
    return f"{shortened(text)} ({type_of(value)})"


def shortened(text: str, limit: int = MAX_SHOWN) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"
