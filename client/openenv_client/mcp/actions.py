"""Which of the gateway's tools an action is a call of. Pure.

    plain action            the tool `step`, the action as its arguments
    one of several kinds    the tool `step_<kind>` of the action's kind
    {"type": "call_tool"}   the environment's own tool that it names
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from openenv_client.errors import InvalidArguments
from openenv_client.frames import JsonObject
from openenv_client.mcp.mirrors import mirrored
from openenv_client.results import Tool

RESET, STEP, STATE, OBSERVE = "reset", "step", "state", "observe"
VARIANT: Final = "step_"

_HANDLES: Final = ("session_id", "openenv_session_id", "openenv_gateway_session_id")
"""What the gateway may call the argument with which a tool is told its session: the first that no tool has for itself."""


@dataclass(frozen=True)
class Call:
    """A tool and its arguments."""

    tool: str
    arguments: JsonObject


class Toolbox:
    """The tools that the gateway lists. `tools` are without the argument that names the session (`handle`), which is the
    wire's business; `handle` is None where tools take none."""

    def __init__(self, listed: Sequence[Tool]) -> None:
        self.handle = _handle(listed)
        self.tools = tuple(_without(tool, self.handle) for tool in listed)
        self._by_name = {tool.name: tool for tool in self.tools}

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    @property
    def names(self) -> str:
        """For messages."""
        return ", ".join(self._by_name) or "none"

    @property
    def own(self) -> list[Tool]:
        """The tools of an environment that has some of its own."""
        return [tool for tool in self.tools if tool.name not in (RESET, STEP, STATE, OBSERVE)]

    def mirrored(self, call: Call) -> dict[str, str]:
        """The headers that repeat some of the call's arguments (see `mirrors`); usually none."""
        return mirrored(self._by_name[call.tool].input_schema, call.arguments)

    def call_of(self, action: Mapping[str, Any]) -> Call:
        """The call that carries out an action. Raises InvalidArguments where there is none, or no telling which."""
        if STEP in self._by_name:
            return Call(STEP, dict(action))
        if action.get("type") == "call_tool" and isinstance(action.get("tool_name"), str):
            return Call(action["tool_name"], dict(action.get("arguments") or {}))
        variants = [tool for tool in self.tools if tool.name.startswith(VARIANT)]
        chosen = _named(action, variants) or _fitting(action, variants)
        if len(chosen) == 1:
            return Call(chosen[0].name, dict(action))
        found = f"more than one tool: {', '.join(tool.name for tool in chosen)}" if chosen else "no tool"
        raise InvalidArguments(f"The action {dict(action)!r} fits {found}. Tools: {self.names}")


def _named(action: Mapping[str, Any], variants: Sequence[Tool]) -> list[Tool]:
    """The variants that a field of the action names: the gateway calls a tool by the value of the field that tells the kinds
    apart. Where values of other fields are names too, that field is the one that no variant lists."""
    listed = {key for tool in variants for key in _properties(tool)}
    names = {key: f"{VARIANT}{value}" for key, value in action.items()}
    named = [tool for tool in variants if tool.name in names.values()]
    if len(named) < 2:
        return named
    return [tool for tool in named if any(name == tool.name and key not in listed for key, name in names.items())]


def _fitting(action: Mapping[str, Any], variants: Sequence[Tool]) -> list[Tool]:
    """The variants that have all of the action's fields (but for one that may name its kind), and whose required ones it has.
    Those that have really all come first."""
    fits = [tool for tool in variants if action.keys() >= set(tool.input_schema.get("required", ()))]
    missing = {tool.name: len(action.keys() - _properties(tool).keys()) for tool in fits}
    least = min(missing.values(), default=0)
    return [tool for tool in fits if missing[tool.name] == least] if least <= 1 else []


def _properties(tool: Tool) -> JsonObject:
    properties = tool.input_schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def _handle(tools: Sequence[Tool]) -> str | None:
    return next((name for name in _HANDLES if tools and all(name in _properties(tool) for tool in tools)), None)


def _without(tool: Tool, argument: str | None) -> Tool:
    if argument is None:
        return tool
    schema = {**tool.input_schema, "properties": {k: v for k, v in _properties(tool).items() if k != argument}}
    required = [name for name in schema.pop("required", ()) if name != argument]
    return Tool(tool.name, tool.description, {**schema, "required": required} if required else schema)
