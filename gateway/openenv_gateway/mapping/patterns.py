"""What may be done with a regular expression that somebody else wrote. Pure.

Python's matcher can need exponential time, so a pattern is run only when a cautious estimate of its work for the text at hand
is small; otherwise the environment, which checks again, decides alone. And a pattern is advertised only if Python and
JavaScript surely read it alike: one that a host cannot compile hides the whole tool list there.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from math import inf

MAX_WORK = 1_000_000
"""Matching steps that a pattern may need by the estimate. More are never started."""

_TOKEN = re.compile(
    r"""(?P<literal> \\. | \[\^?\]?(?:\\.|[^\]\\])*\] )
      | (?P<open> \( (?:\?(?:[:=!>]|<[=!]|P?<\w+>))? ) | (?P<close> \) ) | (?P<either> \| )
      | (?P<count> [*+?] | \{(?P<low>\d*)(?P<comma>,?)(?P<high>\d*)\} ) \??
      | .""",
    re.VERBOSE | re.DOTALL,
)
_PORTABLE = re.compile(
    r"""(?: [\w\ !"#%&',/:;<=>@`~.^$|)-]
          | \((?:\?:)?(?![?*+{])
          | \\[dDwWsS^$\\.*+?()\[\]{}|/]
          | \[\^?(?:[\w\ !"#%&'()*+,./:;<=>?@`~$|{}]|(?<=\w)-(?=\w)|-(?=\])|\\[dDwWsS\\\]\[^.$*+?(){}|/-](?!-\w))+\]
          | (?<=[\w)\].]) (?: [*+?] | \{\d+(?:,\d*)?\} ) \??
        )*""",
    re.VERBOSE | re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled pattern with its estimate: `unbounded` parts that can take any length, and `choices`, a factor for the
    others (infinite for a choice within a repetition). `portable`: JavaScript and Python read it alike."""

    regex: re.Pattern[str]
    unbounded: int
    choices: float
    portable: bool

    def refuses(self, text: str) -> bool:
        """True if `text` surely does not match. False also when finding out could take too long."""
        anchored = self.regex.pattern.startswith("^")
        try:
            work = self.choices * (len(text) + 1.0) ** (self.unbounded + (not anchored))
        except OverflowError:
            return False
        return work <= MAX_WORK and self.regex.search(text) is None


def read_pattern(source: str) -> Pattern | None:
    """The pattern, or None if Python cannot compile it or has doubts (the environment may well have none)."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            regex = re.compile(source)
    except (re.error, OverflowError, RecursionError, Warning):
        return None
    unbounded, choices = _estimate(source)
    return Pattern(regex, unbounded, choices, _PORTABLE.fullmatch(source) is not None)


def _estimate(source: str) -> tuple[int, float]:
    """(parts of any length, product of the other choices). Token by token, with a stack that says of each open group whether
    anything in it gives the matcher a choice; `repeatable` says so of the group that has just been closed."""
    unbounded, choices, groups, repeatable = 0, 1.0, [False], False
    for token in _TOKEN.finditer(source):
        kind, inside, repeatable = token.lastgroup, repeatable, False
        if token["count"]:
            ways = _ways(token)
            groups[-1] |= ways > 1
            unbounded += ways == inf
            choices *= inf if inside and ways > 2 else 1 if ways == inf else ways
        elif kind == "either":
            groups[-1] = True
            choices *= 2
        elif kind == "open":
            groups.append(False)
        elif kind == "close":
            repeatable = groups.pop() if len(groups) > 1 else True  # a bracket in a comment of a verbose pattern
            groups[-1] |= repeatable
    return unbounded, choices


def _ways(token: re.Match[str]) -> float:
    """In how many ways a quantifier may count: `?` two, `{2,5}` four, `{3}` one, `*` and `{2,}` any number."""
    if token["count"] == "?":
        return 2
    if token["count"] in "*+" or (token["comma"] and not token["high"]):
        return inf
    return int(token["high"] or 0) - int(token["low"] or 0) + 1 if token["comma"] else 1
