"""`MCPToolClient`: a client of environments whose actions are calls of tools."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from openenv_client.env_client import EnvClient
from openenv_client.results import StepResult, Tool
from openenv_client.tool_replies import CALL_TOOL, LIST_TOOLS, as_tool

_FRAME_FIELDS = ("done", "reward", "metadata")


@dataclass(frozen=True)
class ListToolsAction:
    """The action that lists an environment's tools."""


@dataclass(frozen=True)
class CallToolAction:
    """The action that calls one tool."""

    tool_name: str
    arguments: dict[str, Any] = field(default_factory=dict)


class Record(SimpleNamespace):
    """Some fields as attributes, and those that an environment adds as well. `model_dump()` gives them as a dictionary."""

    def model_dump(self, **_: Any) -> dict[str, Any]:
        """The fields, those within too. Takes and ignores pydantic's options, as there is nothing to leave out."""
        return {name: _dumped(value) for name, value in vars(self).items()}


class ToolObservation(Record):
    """What a reset or a step shows: `done`, `reward`, `metadata`, and the environment's own fields.

    After ListToolsAction `tools` (Tools); after CallToolAction `tool_name`, `result` and `error`, None or a record of `message`
    and `error_type`, whose `value` is the environment's word.
    """


class ToolState(Record):
    """The state: `episode_id`, `step_count`, and the environment's own fields."""


class MCPToolClient(EnvClient[Any, ToolObservation, ToolState]):
    """Lists and calls tools; each is a step of the environment, with its reward, on every wire that has rewards.

    `call_tool` returns what the tool does; `step(CallToolAction(...))` returns the whole StepResult. Actions may also be
    dictionaries and OpenEnv's own action objects.
    """

    def _step_payload(self, action: Any) -> dict[str, Any]:
        if isinstance(action, ListToolsAction) or getattr(action, "type", None) == LIST_TOOLS["type"]:
            return dict(LIST_TOOLS)
        if hasattr(action, "tool_name") and hasattr(action, "arguments"):
            return {**CALL_TOOL, "tool_name": action.tool_name, "arguments": dict(action.arguments)}
        if isinstance(action, dict):
            return action
        if hasattr(action, "model_dump"):
            dumped: dict[str, Any] = action.model_dump()
            return dumped
        raise TypeError(f"{action!r} is no action: give a CallToolAction, a ListToolsAction or a dictionary")

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[ToolObservation]:
        seen = payload.get("observation", {})
        done, reward, metadata = payload.get("done", False), payload.get("reward"), payload.get("metadata")
        frame = {"done": done, "reward": reward, "metadata": seen.get("metadata", {}) if metadata is None else metadata}
        own = {name: value for name, value in seen.items() if name not in _FRAME_FIELDS}
        return StepResult(ToolObservation(**_typed(own), **frame), reward, done, metadata)

    def _parse_state(self, payload: dict[str, Any]) -> ToolState:
        return ToolState(**{"episode_id": None, "step_count": 0, **payload})


def _typed(seen: dict[str, Any]) -> dict[str, Any]:
    """The environment's fields, tools and errors as objects."""
    if "tools" in seen:
        return {**seen, "tools": [as_tool(tool) for tool in seen["tools"]]}
    if "tool_name" not in seen:
        return seen
    return {"result": None, **seen, "error": _error(seen.get("error"))}


def _error(error: Any) -> Record | None:
    if not error:
        return None
    if not isinstance(error, dict):
        return Record(message=str(error), error_type=Record(value=None))
    return Record(**{**error, "error_type": Record(value=error.get("error_type"))})


def _dumped(value: Any) -> Any:
    if isinstance(value, Record):
        return value.model_dump()
    if isinstance(value, Tool):
        return vars(value)
    return [_dumped(each) for each in value] if isinstance(value, list) else value
