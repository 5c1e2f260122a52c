"""Names that every host accepts: of tools, of their arguments, and the words that a name stands for. Pure.

Hosts put a prefix before a tool's name and cut at 64 characters, so ours are short; a name that has to change gets a hash of
the whole original, so it is the same on every start and never depends on its neighbours.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable

_TOOL = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_PROPERTY = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


def tool_name(wanted: str, limit: int, taken: Collection[str] = ()) -> str:
    """`wanted` if it is a name that hosts accept, has at most `limit` characters and is not `taken`; else a readable stem
    and a hash of `wanted`, which is unique among `taken` and at most `limit` characters long."""
    if _TOOL.fullmatch(wanted) and len(wanted) <= limit and wanted not in taken:
        return wanted
    stem = re.sub(r"[^A-Za-z0-9_-]+", "_", wanted).lstrip("-0123456789") or "tool"
    digest = hashlib.sha256(wanted.encode("utf-8", "surrogatepass")).hexdigest()
    for start in range(len(digest)):  # the first start nearly always; later ones only if the short hash is taken as well
        name = f"{stem[: max(limit - 9, 0)]}_{digest[start : start + 8]}"[:limit]
        if name not in taken:
            return name
    raise ValueError(f"no free tool name of {limit} characters for {wanted!r}")


def property_names(originals: Iterable[str]) -> dict[str, str]:
    """Advertised name → original name, in the given order. Names that hosts accept stay as they are; others (`_x`, `$x`,
    `a.b`) are made of their letters, and numbered where that collides."""
    originals = list(originals)
    taken = {name for name in originals if _PROPERTY.fullmatch(name)}
    names: dict[str, str] = {}
    for original in originals:
        name = original if original in taken else free_name(_letters(original), taken | names.keys())
        names[name] = original
    return names


def free_name(wanted: str, taken: Collection[str]) -> str:
    """`wanted`, or `wanted_2`, `wanted_3`, …: the first that is not `taken`."""
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    return name


def words_of(name: str) -> list[str]:
    """The lower-case words in a name of any style: `MoveAction`, `move-action`, `move_action` are all two words."""
    return [word.lower() for word in _WORDS.findall(name)]


def sentence_of(name: str) -> str:
    """A name as words with one capital, for titles and for arguments that nobody described."""
    return " ".join(words_of(name)).capitalize() or name


def _letters(name: str) -> str:
    letters = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")
    return letters if letters[:1].isalpha() else f"arg_{letters}".rstrip("_")
