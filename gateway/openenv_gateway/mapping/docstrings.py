"""Python docstrings, which is what OpenEnv's schemas carry as descriptions: their prose, and what they say of attributes. Pure.

Upstream's action classes describe their fields in an `Attributes:` section of the docstring and leave the fields' own
descriptions empty, so without this an agent would see `action_id` and nothing about it.
"""

from __future__ import annotations

import inspect
import re

_SECTION = re.compile(r"(?m)^(?:Attributes|Args|Arguments|Parameters|Fields):[ \t]*$")
_ENTRY = re.compile(r"^(\*{0,2}\w+)(?: *\([^)]*\))?: *(.*)$")


def split_docstring(text: str) -> tuple[str, dict[str, str]]:
    """(prose without its attribute section, attribute → what is said of it, in one line)."""
    text = inspect.cleandoc(text)
    heading = _SECTION.search(text)
    if heading is None:
        return text, {}
    section, after = _indented(text[heading.end() :])
    entries = _entries(inspect.cleandoc(section))
    if not entries:
        return text, {}
    prose = "\n\n".join(part for part in (text[: heading.start()].strip(), after.strip()) if part)
    return prose, entries


def _indented(text: str) -> tuple[str, str]:
    """The indented lines with which `text` begins (blank ones included), and what follows them."""
    lines = text.lstrip("\n").split("\n")
    end = next((index for index, line in enumerate(lines) if line.strip() and not line[0].isspace()), len(lines))
    return "\n".join(lines[:end]), "\n".join(lines[end:])


def _entries(section: str) -> dict[str, str]:
    found: dict[str, str] = {}
    name = ""
    for line in section.split("\n"):
        entry = None if line[:1].isspace() else _ENTRY.match(line)
        if entry:
            name = entry[1].lstrip("*")
            found[name] = entry[2]
        elif name and line.strip():
            found[name] = f"{found[name]} {line.strip()}".strip()
    return found
