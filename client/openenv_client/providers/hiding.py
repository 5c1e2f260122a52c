"""Values of environment variables that must not be read in a server's output: a server that fails may well print them. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

SHORTEST = 8
"""Characters. What is shorter (a number, `true`) is no secret, and hiding it would garble the rest."""


class Hidden:
    """Replaces the values of these variables, wherever a text has them, by `${NAME}`. Lines of values with several lines are
    hidden each, and values as Python and JSON write them in quotes too."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._names = {form: name for name, value in variables.items() for form in _forms(value)}
        longest_first = sorted(self._names, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def __call__(self, text: str) -> str:
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda found: f"${{{self._names[found[0]]}}}", text)

    def without_fragment(self, text: str) -> str:
        """A text that was cut off at its beginning, without what may be the end of a value there."""
        ends = (len(form) - at for form in self._names for at in range(1, len(form)) if text.startswith(form[at:]))
        return text[max(ends, default=0) :]


NOTHING = Hidden({})


def _forms(value: str) -> Iterator[str]:
    for line in value.splitlines():
        if len(line) >= SHORTEST:
            yield from (line, repr(line)[1:-1], json.dumps(line)[1:-1])
