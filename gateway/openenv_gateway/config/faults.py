"""All faults of a parsed configuration against the published schema, each as a path and a sentence. Pure.

Values of environment variables are secrets: a message names at most their kind.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator, ValidationError

from openenv_gateway.config.spec import bad_name
from openenv_gateway.config.words import did_you_mean, kind, misfit, shown
from openenv_gateway_schemas import load

Path = tuple[str, ...]
Fault = tuple[Path, str]

SECRET = "env_vars"
OPEN_TABLES = ("reset", "arguments", "start")


def schema_faults(document: Mapping[str, Any]) -> list[Fault]:
    """Every place where the document differs from `config.schema.json`, and what no schema can see in TOML (NaN; dates where
    JSON values are due), each once, in no particular order."""
    errors = Draft202012Validator(load("config")).iter_errors(document)
    faults = [fault for error in errors for fault in _worded(error)]
    return list(dict.fromkeys([*faults, *_no_json(document, ())]))  # one wrong value may fail two keywords: told once


def _worded(error: ValidationError) -> Iterator[Fault]:
    path = tuple(str(part) for part in error.absolute_path)
    keyword, part = str(error.validator), error.schema
    value: Any = error.instance
    if not isinstance(part, Mapping):
        raise TypeError(f"the configuration schema is {part!r} at {error.json_path}")
    if "propertyNames" in error.absolute_schema_path:
        yield (*path, str(value)), misfit(part, value) if "examples" in part else bad_name(str(value))
    elif keyword == "additionalProperties":
        known = part["properties"]
        for key in sorted(value.keys() - known.keys()):
            yield (*path, key), f"unknown{did_you_mean(key, known) or '; known are ' + ', '.join(known)}"
    elif keyword == "required":
        yield from (((*path, key), "missing") for key in part["required"] if key not in value)
    elif SECRET in path:
        yield path, f"expected a text, got {kind(value)}"
    else:
        yield path, misfit(part, value)


def _no_json(value: object, path: Path) -> Iterator[Fault]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _no_json(inner, (*path, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _no_json(inner, (*path, str(number)))
    elif isinstance(value, float) and not math.isfinite(value) and SECRET not in path:
        if math.isnan(value) or _in_open_table(path):
            yield path, f"expected a number, got {shown(value)}"
    elif isinstance(value, (datetime.date, datetime.time)) and _in_open_table(path):
        yield path, f"expected a JSON value, got {kind(value)}; write it as a text"


def _in_open_table(path: Path) -> bool:
    """Whether a path is inside one of an environment's tables which the schema leaves open."""
    return len(path) > 3 and path[0] == "environments" and path[2] in OPEN_TABLES
