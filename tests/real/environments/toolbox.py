"""A box of MCP tools: an environment whose actions are calls of its own FastMCP server's tools.

The framework gives such steps no reward and no end; this one rewards every call with 0.1 and ends with the tool `finish`.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pictures
from fastmcp import FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.utilities.types import Audio, Image
from framework import serve
from openenv.core.env_server import Observation, State
from openenv.core.env_server.mcp_environment import MCPEnvironment
from openenv.core.env_server.mcp_types import CallToolAction, CallToolObservation


def tools() -> FastMCP:
    """A server of its own for each session, for what `note` keeps."""
    box = FastMCP("toolbox")
    notes: list[str] = []

    @box.tool
    def say(text: str) -> str:
        """Say a text; it comes back."""
        return text

    @box.tool
    def note(text: str) -> list[str]:
        """Keep a note; all notes of this session come back."""
        notes.append(text)
        return notes

    @box.tool
    def picture(number: int = 0) -> Image:
        """Draw a picture."""
        return Image(data=pictures.png(8, 12, number), format="png")

    @box.tool
    def sound() -> Audio:
        """Play a sound."""
        return Audio(data=pictures.wav(64), format="wav")

    @box.tool
    def measure(width: float, height: float) -> dict[str, float]:
        """Measure a rectangle: its area and its outline."""
        return {"area": width * height, "outline": 2 * (width + height)}

    @box.tool
    def fail(reason: str) -> str:
        """Fail for a reason."""
        raise ToolError(reason)

    @box.tool
    async def wait(seconds: float) -> str:
        """Wait some seconds."""
        await asyncio.sleep(seconds)
        return f"waited {seconds:g} s"

    @box.tool
    def finish() -> str:
        """End the episode."""
        return "finished"

    return box


class ToolboxEnvironment(MCPEnvironment):
    """Use the tools; every call earns 0.1, and finish ends the episode."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__(tools())
        self._state = State()

    def reset(self, seed: int | None = None, episode_id: str | None = None, **_: Any) -> Observation:
        self._state = State(episode_id=episode_id)
        return Observation(done=False, reward=0.0, metadata={"status": "ready"})

    def step(self, action: Any, timeout_s: float | None = None, **kwargs: Any) -> Observation:
        return self._judge(action, super().step(action, timeout_s=timeout_s, **kwargs))

    async def step_async(self, action: Any, timeout_s: float | None = None, **kwargs: Any) -> Observation:
        return self._judge(action, await super().step_async(action, timeout_s=timeout_s, **kwargs))

    def _step_impl(self, action: Any, timeout_s: float | None = None, **_: Any) -> Observation:
        raise ValueError(f"the toolbox takes list_tools and call_tool, not {type(action).__name__}")

    def _judge(self, action: Any, observation: Observation) -> Observation:
        if isinstance(action, CallToolAction):
            self._state.step_count += 1
            observation.reward = 0.1
            observation.done = action.tool_name == "finish"
        return observation

    @property
    def state(self) -> State:
        return self._state


app = serve(ToolboxEnvironment, CallToolAction, CallToolObservation)
