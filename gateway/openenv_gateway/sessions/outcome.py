"""What one call on a lane comes to, before it is put into MCP's words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from openenv_client.frames import ErrorFrame, JsonObject, Kind, Observation, State
from openenv_gateway.errors import PreviousActionLate


class Late(NamedTuple):
    """The outcome of an earlier call that its caller had given up. `tool` is the tool that was called, "reset" for the
    gateway's own resets; `action` is what was sent."""

    kind: Kind
    tool: str
    action: Mapping[str, Any]
    reply: Observation | State | ErrorFrame

    def as_note(self) -> JsonObject:
        """As `late` in the published tool_result schema."""
        note: JsonObject = {"tool": self.tool, "action": dict(self.action)}
        match self.reply:
            case Observation(observation=observation, reward=reward, done=done):
                return {**note, "observation": observation, "reward": reward, "done": done}
            case State(state=state):
                return {**note, "state": state}
            case ErrorFrame(message=message, code=code):
                return {**note, "error": {"code": code, "message": message}}


class Outcome(NamedTuple):
    """`reply` answers this call; `late` is what an earlier, given-up call came to; `notice` tells the agent what the gateway
    did by itself; `opened`: this call opened the lane's environment session."""

    reply: Observation | State
    episode: str | None
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


