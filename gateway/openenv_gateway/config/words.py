"""What a JSON Schema asks of one value, in words, and what came instead. Pure.

Knows the keywords that the configuration schema uses for single values: type, enum, minimum, exclusiveMinimum, maximum,
minLength, pattern. `fits` decides them without `jsonschema`, whose import takes longer than the rest of a start on the command
line.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any

Part = Mapping[str, Any]

LONGEST_SHOWN = 60
BOUNDS = (("minimum", -math.inf), ("maximum", math.inf), ("exclusiveMinimum", -math.inf))
KINDS = {"string": "a text", "array": "a list", "object": "a table", "boolean": "true or false"}


def fits(part: Part, value: object) -> bool:
    """Whether a single value is what the schema part allows. Stricter than JSON Schema in one thing: NaN never fits."""
    return IS_TYPE[part["type"]](value) and ("enum" not in part or value in part["enum"]) and _in_bounds(part, value)


def misfit(part: Part, value: object) -> str:
    """`expected a number above 0, got "x"`."""
    return f"expected {expected(part, value)}, got {shown(value)}"


def expected(part: Part, value: object) -> str:
    """What the part asks for. The upper bound is named only where the value is beyond it, the emptiness where it is empty."""
    if "enum" in part:
        return "one of " + ", ".join(map(shown, part["enum"]))
    if part["type"] in ("integer", "number"):
        return _number(part, value)
    if "pattern" in part:
        return "a text such as " + " or ".join(map(shown, part["examples"]))
    return KINDS[part["type"]] + (" that is not empty" if value == "" else "")


def shown(value: object) -> str:
    """The value as it stands in a file, shortened; lists, tables and dates only by their kind."""
    if isinstance(value, str):
        text = json.dumps(value, ensure_ascii=False)
        return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + '…"'
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value}" if isinstance(value, (int, float)) else kind(value)


def kind(value: object) -> str:
    """The kind of a value, without the value: for what nobody may read."""
    if isinstance(value, bool):
        return "a boolean"
    for types, word in (((int, float), "a number"), (str, "a text"), (list, "a list"), (dict, "a table")):
        if isinstance(value, types):
            return word
    return "a date or time"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean "step_timeout_s"?`, or nothing if no known word is near."""
    near = get_close_matches(word, list(known), 1, 0.6)
    return f"; did you mean {shown(near[0])}?" if near else ""


def _number(part: Part, value: object) -> str:
    word = "a whole number" if part["type"] == "integer" else "a number"
    if "maximum" in part and isinstance(value, (int, float)) and value > part["maximum"]:
        return f"{word} of at most {part['maximum']}"
    if "exclusiveMinimum" in part:
        return f"{word} above {part['exclusiveMinimum']}"
    return f"{word} of {part['minimum']} or more" if "minimum" in part else word


def _in_bounds(part: Part, value: object) -> bool:
    if isinstance(value, str):
        return len(value) >= int(part.get("minLength", 0)) and re.search(part.get("pattern", ""), value) is not None
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return True
    low, high, above = (float(part.get(key, bound)) for key, bound in BOUNDS)
    return low <= value <= high and value > above


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and not math.isnan(value)


def _is_integer(value: object) -> bool:
    return _is_number(value) and (isinstance(value, int) or (isinstance(value, float) and value.is_integer()))


IS_TYPE: Mapping[str, Callable[[object], bool]] = {
    "integer": _is_integer,
    "number": _is_number,
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}
