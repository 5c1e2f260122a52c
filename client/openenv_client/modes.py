"""Which protocol a client speaks: the argument, else OPENENV_CLIENT_MODE, else simulation."""

from __future__ import annotations

import os
from enum import Enum

MODE_VARIABLE = "OPENENV_CLIENT_MODE"


class Mode(Enum):
    """The two protocols."""

    SIMULATION = "simulation"
    """OpenEnv's frames on `/ws`: reset, step, state."""
    PRODUCTION = "production"
    """MCP JSON-RPC over HTTP."""


def chosen_mode(argument: str | None) -> Mode:
    """The mode for a new client, in any case of letters. Raises ValueError for anything else, also for an empty variable."""
    wanted = (os.environ.get(MODE_VARIABLE, Mode.SIMULATION.value) if argument is None else argument).lower()
    try:
        return Mode(wanted)
    except ValueError:
        raise ValueError(
            f"Invalid mode: '{wanted}'. Must be 'simulation' or 'production'. "
            f"Set via constructor parameter or {MODE_VARIABLE} environment variable."
        ) from None
