"""What one call on a lane comes to, before it is put into MCP's words."""

from __future__ import annotations

from dataclasses import dataclass

from openenv_client.frames import ErrorFrame, Kind, Observation, State
from openenv_gateway.errors import PreviousActionLate


@dataclass(frozen=True, slots=True)
class Late:
    """The outcome of an earlier call that its caller had given up. `tool` is the tool that was called, "reset" for the
    gateway's own resets."""

    kind: Kind
    tool: str
    reply: Observation | State | ErrorFrame


@dataclass(frozen=True, slots=True)
class Outcome:
    """`reply` answers this call; `late` is what an earlier, given-up call came to; `notice` tells the agent what the gateway
    did by itself; `opened`: this call opened the lane's environment session."""

    reply: Observation | State
    episode: str
    step: int
    late: Late | None = None
    notice: str | None = None
    opened: bool = False


class ActionLate(PreviousActionLate):
    """An earlier call finished late; the present action was not executed. `late` is the outcome."""

    def __init__(self, late: Late) -> None:
        super().__init__(
            f"Your previous call of {late.tool} finished late, after its call had been given up; "
            "its outcome is told here and the present action was NOT executed"
        )
        self.late = late


