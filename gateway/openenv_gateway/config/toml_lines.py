"""On which line of a TOML text each key stands. Pure; `tomllib` parses but tells no lines.

A valid TOML text is a row of statements (a header, or `key = value`), each ending at a line's end, and the first lines of
one statement are no valid TOML until it is complete. So statements are found by letting `tomllib` try: whatever the syntax
inside (multi-line texts, lists, quotes, dotted keys), the parser decides, not a second one here.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Path = tuple[str, ...]

PLACE = re.compile(r"\(at line (\d+), column \d+\)")


def key_lines(text: str) -> Mapping[Path, int]:
    """The line (from 1) of every header and key of a valid TOML text, by path; the first where a table is continued.

    Keys within an inline table have the line of the statement; list entries have no path of their own.
    """
    lines: dict[Path, int] = {(): 1}
    header: Path = ()
    for number, statement, parsed in _statements(text):
        paths = list(_paths(parsed))
        if statement.lstrip().startswith("["):
            header = paths[-1]
            paths = [header[:depth] for depth in range(1, len(header) + 1)]
        else:
            paths = [header + path for path in paths]
        for path in paths:
            lines.setdefault(path, number)
    return lines


def line_of(path: Sequence[str], lines: Mapping[Path, int]) -> int:
    """The line of a path, or of the nearest table around it."""
    at = tuple(path)
    while at not in lines:
        at = at[:-1]
    return lines[at]


def error_place(error: tomllib.TOMLDecodeError, text: str) -> tuple[int, str]:
    """The line of a syntax error and what it says, without the place."""
    message = str(error)
    found = PLACE.search(message)
    line = int(found[1]) if found else text.count("\n") + 1
    return line, re.sub(r" \(at [^()]*\)$", "", message)


def _statements(text: str) -> Iterator[tuple[int, str, Mapping[str, Any]]]:
    """Each statement with its first line and what it parses to alone; blank lines and comments are none."""
    pending: list[str] = []
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        pending.append(line)
        try:
            parsed = tomllib.loads("\n".join(pending))
        except tomllib.TOMLDecodeError:
            continue  # not complete yet: the whole text is valid, so a later line completes it
        if parsed:
            yield number - len(pending) + 1, "\n".join(pending), parsed
        pending = []


def _paths(value: object, at: Path = ()) -> Iterator[Path]:
    """Every path in a parsed statement, shorter ones first; a `[[list.header]]` counts as the table that it opens."""
    if isinstance(value, list) and len(value) == 1 and value[0] == {}:
        return
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*at, key)
            yield from _paths(inner, (*at, key))
