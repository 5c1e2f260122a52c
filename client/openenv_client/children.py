"""With which arguments a further session's client of the same class is made. Pure."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any


def child_arguments(client: type, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the arguments that the class's constructor takes: a subclass may have another signature than its base."""
    parameters = inspect.signature(client).parameters
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        return dict(arguments)
    return {name: value for name, value in arguments.items() if name in parameters}
