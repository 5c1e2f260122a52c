"""The head of one HTTP request, decoded when somebody asks for it: most requests carry more than anybody reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from openenv_gateway.transports.guards import Refused

EVENT_STREAM = "text/event-stream"
REMEMBERED = 64
"""How many different Accept values are read once only: a client sends the same one with every request."""
LONGEST = 500
"""Bytes of a value that may be remembered."""
MAX_NAME = 128
"""Characters of the NAME in `?session=NAME`."""


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
        self._texts: dict[str, str] = {}
        self.repeats = len(self._last) != len(self._raw)

    def __getitem__(self, name: str) -> str:
        text = self._texts.get(name)
        if text is None:  # kept, since heads are shared by requests, see Head
            text = self._texts[name] = self._last[name.encode()].decode("latin-1").strip()
        return text

    def get(self, name: str, default: Any = None) -> Any:
        text = self._texts.get(name)
        if text is not None:
            return text
        return self[name] if name.encode() in self._last else default

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


class Head:
    """What the head of a request says to MCP's transport. Requests with equal heads may share one.

    `version` and `session_id` are its headers MCP-Protocol-Version and Mcp-Session-Id, None where they are missing.
    """

    def __init__(self, method: str, raw: Iterable[tuple[bytes, bytes]], query: bytes) -> None:
        self.method = method
        self.headers = Headers(raw)
        self.version: str | None = self.headers.get("mcp-protocol-version")
        self.session_id: str | None = self.headers.get("mcp-session-id")
        self._query = query

    @cached_property
    def accepted(self) -> Accepted:
        """What the client takes."""
        return self.headers.accepted()

    @cached_property
    def lane_name(self) -> str | None:
        """NAME of `?session=NAME`. Raises Refused for an empty, doubled or overlong one."""
        if not self._query:
            return None
        try:
            names = parse_qs(self._query.decode("latin-1"), keep_blank_values=True, errors="strict").get("session")
        except ValueError as error:
            raise Refused(400, "The URL's query is not valid UTF-8") from error
        if names is None:
            return None
        if len(names) != 1 or not 0 < len(names[0]) <= MAX_NAME:
            raise Refused(400, f"?session=NAME takes one name of 1 to {MAX_NAME} characters")
        return str(names[0])

    def check_accept(self, *, needs_events: bool = False) -> None:
        """Raises Refused 406 for a client that takes neither JSON nor events, or no events where they are needed."""
        accepted = self.accepted
        if needs_events and not (accepted.events or accepted.anything):
            raise Refused(406, f"This is answered by a stream: Accept must list {EVENT_STREAM}")
        if not (accepted.json or accepted.events):
            raise Refused(406, "Accept must list application/json or text/event-stream (clients list both)")
