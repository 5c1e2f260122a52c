"""How requests to environments are written as JSON: what `json.dumps` writes, sooner."""

from __future__ import annotations

import json
from typing import Any

import orjson


def encode_request(value: Any) -> str | bytes:
    """The same JSON value that `json.dumps` writes, and its errors.

    The faster encoder refuses integers beyond 64 bits and lone surrogates, and writes null for numbers that are not finite,
    which Python programs exchange as NaN and Infinity: such values are left to `json.dumps`.
    """
    try:
        text = orjson.dumps(value, option=orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS)
    except TypeError:
        return json.dumps(value)
    return json.dumps(value) if b"null" in text else text
