"""The headers of one HTTP request, decoded when somebody asks for them: most requests carry more than anybody reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

EVENT_STREAM = "text/event-stream"
REMEMBERED = 64
"""How many different Accept values are read once only: a client sends the same one with every request."""
LONGEST = 500
"""Bytes of a value that may be remembered."""


class Accepted(NamedTuple):
    """What a client takes as an answer: JSON, events, both; `anything` if it said so (`*/*`, or nothing at all)."""

    json: bool
    events: bool
    anything: bool


class Headers(Mapping[str, str]):
    """By name in lower case; values without blanks around them. Of a header that came twice the last one counts.

    `raw` is what ASGI gives: names in lower case already. `repeats`: whether any header came twice.
    """

    def __init__(self, raw: Iterable[tuple[bytes, bytes]]) -> None:
        self._raw = list(raw)
        self._last = dict(self._raw)
        self.repeats = len(self._last) != len(self._raw)

    def __getitem__(self, name: str) -> str:
        return self._last[name.encode()].decode("latin-1").strip()

    def get(self, name: str, default: Any = None) -> Any:
        value = self._last.get(name.encode())
        return default if value is None else value.decode("latin-1").strip()

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.encode() in self._last

    def __iter__(self) -> Iterator[str]:
        return (name.decode("latin-1") for name in self._last)

    def __len__(self) -> int:
        return len(self._last)

    def doubled(self, names: frozenset[str]) -> str | None:
        """The first of `names` that came more than once; None usually."""
        if not self.repeats:
            return None
        came: set[str] = set()
        for name in (raw.decode("latin-1") for raw, _ in self._raw):
            if name in came and name in names:
                return name
            came.add(name)
        return None

    def accepted(self) -> Accepted:
        """The Accept header; several of them are one list."""
        if self.repeats:
            value = b",".join(value.strip() for name, value in self._raw if name == b"accept")
        else:
            value = self._last.get(b"accept", b"")
        return _remembered(value) if len(value) <= LONGEST else _accepted(value)


def _accepted(value: bytes) -> Accepted:
    given = value.decode("latin-1").strip() or "*/*"
    kinds = {part.split(";", 1)[0].strip().lower() for part in given.split(",")}
    return Accepted(
        json=not {"application/json", "application/*", "*/*"}.isdisjoint(kinds),
        events=not {EVENT_STREAM, "text/*"}.isdisjoint(kinds),
        anything="*/*" in kinds,
    )


_remembered = lru_cache(REMEMBERED)(_accepted)
