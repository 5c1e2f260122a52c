"""Arguments that clients repeat in HTTP headers, so that proxies can route by them: `x-mcp-header` in a tool's schema. Pure.

The rules are those of MCP 2026-07-28, Streamable HTTP, "Custom Headers from Tool Parameters": the annotation stands on a
property that is reached from the root through `properties` alone, whose type is string, integer or boolean; it names a header
`Mcp-Param-NAME` by a token of RFC 9110, differently from all others whatever their case.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from openenv_client.frames import JsonObject
from openenv_gateway.mapping.references import positions

ANNOTATION = "x-mcp-header"
PREFIX = "mcp-param-"

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_TYPES = ("string", "integer", "boolean")
_DECIMAL = re.compile(r"(-?[0-9]{1,300})(\.0+)?")


class Misplaced(Exception):
    """An annotation that breaks the rules: clients then have to leave out the whole tool."""


@dataclass(frozen=True, slots=True)
class Mirror:
    """One argument that comes in a header as well. `path`: the names that lead to it; `header`: in lower case, as headers are
    looked up."""

    path: tuple[str, ...]
    header: str

    def value_in(self, arguments: Mapping[str, Any]) -> Any:
        """The argument; None if it was left out, or is nothing that a header could say."""
        value: Any = arguments
        for name in self.path:
            value = value.get(name) if isinstance(value, Mapping) else None
        return value if isinstance(value, str | int | float) else None

    @staticmethod
    def agrees(value: Any, header: str) -> bool:
        """Whether a header, decoded, says the same as an argument. Whole numbers are compared as numbers: 42.0 is 42."""
        if isinstance(value, bool):
            return header == ("true" if value else "false")
        number = _DECIMAL.fullmatch(header)
        if isinstance(value, int | float) and number is not None:
            return int(number[1]) == value
        return header == str(value)


def mirrors_of(schema: JsonObject) -> tuple[Mirror, ...]:
    """The arguments that are repeated in headers; usually none. Raises Misplaced if one may not be."""
    found: dict[str, Mirror] = {}
    for path, node in positions(schema):
        if ANNOTATION in node:
            name = node[ANNOTATION]
            if not path or node.get("type") not in _TYPES or not isinstance(name, str) or not _TOKEN.fullmatch(name):
                raise Misplaced
            header = PREFIX + name.lower()
            if header in found:
                raise Misplaced
            found[header] = Mirror(path, header)
    return tuple(found.values())
