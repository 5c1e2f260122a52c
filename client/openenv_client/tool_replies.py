"""MCP environments on `/ws`: their two actions, and what their observations say. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from openenv_client.errors import BadReply, ToolFailed
from openenv_client.frames import JsonObject
from openenv_client.results import Tool

LIST_TOOLS: Final[Mapping[str, Any]] = {"type": "list_tools"}
CALL_TOOL: Final[Mapping[str, Any]] = {"type": "call_tool"}


def listed(payload: JsonObject) -> list[Tool]:
    """The tools in the answer to a `list_tools` step. Raises BadReply if it is another observation."""
    tools = payload["observation"].get("tools")
    if not isinstance(tools, list):
        raise BadReply("the observation", "no list of tools: this environment takes plain actions, and has none")
    return [as_tool(tool) for tool in tools]


def as_tool(value: object) -> Tool:
    """One tool as servers write it; `inputSchema` and `input_schema` are both met. Raises BadReply."""
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        raise BadReply("a tool", "without a name")
    schema = value.get("input_schema", value.get("inputSchema"))
    return Tool(value["name"], value.get("description") or "", schema if isinstance(schema, dict) else {})


def called(name: str, payload: JsonObject) -> Any:
    """What a `call_tool` step returned: the tool's data where the framework wrapped it, else the whole result.

    An observation that is no tool's result is returned as it is. Raises ToolFailed when the environment reports an error.
    """
    observation = payload["observation"]
    if error := observation.get("error"):
        raise tool_failure(name, error)
    if "tool_name" not in observation:
        return observation
    result = observation.get("result")
    return result["data"] if isinstance(result, dict) and "data" in result else result


def tool_failure(name: str, error: object) -> ToolFailed:
    """The failure in an observation's `error`: `{error_type, message}` in OpenEnv's environments."""
    if not isinstance(error, dict):
        return ToolFailed(name, str(error))
    kind = error.get("error_type")
    return ToolFailed(name, str(error.get("message", error)), kind if isinstance(kind, str) else None)
