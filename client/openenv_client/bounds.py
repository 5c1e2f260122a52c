"""Times that users give: checked where they are given, before anything is sent. Pure."""

from __future__ import annotations

import math


def seconds(name: str, value: float | None) -> float:
    """The bound in seconds; None means that there is none. Raises ValueError for what is no positive number."""
    if value is None:
        return math.inf
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        raise ValueError(f"{name} must be a positive number of seconds, or None for no limit, and not {value!r}")
    return value
