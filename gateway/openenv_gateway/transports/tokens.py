"""The token file: who may call, as one line each, and its text as what it grants.

    # scope   name       token (openssl rand -hex 32)
    agent     team-blue  6f0c…
    operator  ci         91ab…

A token is kept as its SHA-256 digest alone, and no message quotes a word of a line: where the words stand in the wrong order,
any of them may be the token.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

LEAST = 32
"""The fewest characters of a token: 128 random bits in hexadecimal."""
WORDS = ("scope", "name", "token")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,29}")
"""Shorter than any token, so that a token in the name's place is never taken for a name, and shown."""
TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")
"""What a bearer token may consist of (RFC 6750, section 2.1)."""


class TokenScope(StrEnum):
    """What a token is for: `agent` plays by MCP, `operator` controls environments as well."""

    AGENT = "agent"
    OPERATOR = "operator"


GRANTED: Mapping[TokenScope, frozenset[TokenScope]] = MappingProxyType({
    TokenScope.AGENT: frozenset({TokenScope.AGENT}),
    TokenScope.OPERATOR: frozenset(TokenScope),
})
"""What each scope allows: operator includes agent."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Who calls. MCP sessions, lanes and handles belong to the `name`; `scopes` are what it may do; `digest` is that of the
    token that said so, of which one name may have several."""

    name: str
    scopes: frozenset[TokenScope]
    digest: bytes = field(default=b"", repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of one file, by digest."""

    principals: Mapping[bytes, Principal] = field(repr=False)

    def __len__(self) -> int:
        return len(self.principals)

    def find(self, token: bytes) -> Principal | None:
        """Whose token it is, None for an unknown one.

        One look into a table. How long that takes tells nothing of use: what is compared is the digest of what was sent.
        Whoever learnt from it how a stored digest begins would know nothing of the token, whose 128 random bits or more
        cannot be found from their digest.
        """
        return self.principals.get(hashlib.sha256(token).digest())

    def grants(self, principal: Principal) -> bool:
        """Whether the principal's token is still here, and grants the same."""
        return self.principals.get(principal.digest) == principal


@dataclass(frozen=True, slots=True)
class _Entry:
    line: int
    scope: TokenScope
    name: str
    digest: bytes


class _BadLine(Exception):
    """What is wrong with one line, without its words."""


def parse_tokens(text: str) -> tuple[Tokens, list[tuple[int, str]]]:
    """The tokens in a file's text, and all its faults with their lines (from 1). Pure.

    One name may have several tokens of the same scope, so that a new one can be given out before the old one goes.
    """
    entries: list[_Entry] = []
    faults: list[tuple[int, str]] = []
    for number, words in _lines(text):
        try:
            entries.append(_entry(number, words))
        except _BadLine as bad:
            faults.append((number, str(bad)))
    faults += _conflicts(entries)
    found = {entry.digest: Principal(entry.name, GRANTED[entry.scope], entry.digest) for entry in entries}
    return Tokens(MappingProxyType(found)), sorted(faults)


def _lines(text: str) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(text.split("\n"), start=1):
        words = line.split()
        if words and not words[0].startswith("#"):
            yield number, words


def _entry(line: int, words: list[str]) -> _Entry:
    if len(words) != len(WORDS):
        raise _BadLine(f"expected scope, name and token, got {len(words)} word{'s' * (len(words) != 1)}")
    scope, name, token = words
    if scope not in tuple(TokenScope):
        raise _BadLine(f"the first word is the scope: {' or '.join(TokenScope)}")
    if not NAME.fullmatch(name):
        raise _BadLine("the second word is the name: 1 to 30 letters, digits and . _ @ -, a letter or digit first")
    if len(token) < LEAST:
        raise _BadLine(f"the token has {len(token)} characters, {LEAST} is the least (openssl rand -hex 32 makes one)")
    if not TOKEN.fullmatch(token):
        raise _BadLine("the token may have letters, digits and . _ ~ + / -, and = at its end")
    return _Entry(line, TokenScope(scope), name, hashlib.sha256(token.encode()).digest())


def _conflicts(entries: list[_Entry]) -> Iterator[tuple[int, str]]:
    by_digest: dict[bytes, _Entry] = {}
    by_name: dict[str, _Entry] = {}
    for entry in entries:
        same = by_digest.setdefault(entry.digest, entry)
        if same is not entry:
            yield entry.line, f"the token is that of line {same.line}: each is given out once"
        first = by_name.setdefault(entry.name, entry)
        if first.scope is not entry.scope:
            yield entry.line, f"the name {entry.name} has the scope {first.scope} in line {first.line}: one name, one scope"
