"""How a container ended, from what the engine says about it. Pure."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_SIGNALLED = 128
"""A shell's and the engine's way to say "ended by signal N": exit code 128 + N."""


@dataclass(frozen=True)
class Ending:
    """`code` is the exit code as the engine gives it, None when nobody knows it any more: `removed` by somebody else."""

    code: int | None
    out_of_memory: bool = False
    memory: str = ""
    error: str = ""

    @property
    def removed(self) -> bool:
        return self.code is None

    @property
    def status(self) -> int:
        """As processes have it: -N if signal N ended it. What was removed was killed first."""
        if self.code is None:
            return -signal.SIGKILL
        return -(self.code - _SIGNALLED) if _signal_name(self.code) else self.code

    def reason(self) -> str:
        """Why it is no more, and what helps, as the end of `Launching … failed: `."""
        if self.code is None:
            return "its container was removed by somebody else"
        if self.out_of_memory:
            limit = f" of {self.memory}" if self.memory else ""
            return f"it ran out of memory and was killed; give it more than its limit{limit} (option memory)"
        because = f" ({name})" if (name := _signal_name(self.code)) else ""
        return f"its container exited prematurely with code {self.code}{because}" + (f": {self.error}" if self.error else "")


REMOVED = Ending(None)


def ending_of(attributes: Mapping[str, Any]) -> Ending | None:
    """From the engine's `inspect` of a container; None while it runs, is paused, or was not started yet."""
    state = attributes["State"]
    if state["Running"] or state["Status"] == "created":
        return None
    limit = attributes.get("HostConfig", {}).get("Memory") or 0
    return Ending(state["ExitCode"], state["OOMKilled"], f"{limit / 2**20:g} MB" if limit else "", state.get("Error", ""))


def _signal_name(code: int) -> str:
    try:
        return signal.Signals(code - _SIGNALLED).name
    except ValueError:
        return ""
