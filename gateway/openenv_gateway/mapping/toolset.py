"""The tools of one environment, as agents see them and as calls find them. Pure; everything is computed once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum, StrEnum
from typing import Any

from openenv_client.frames import JsonObject
from openenv_gateway.errors import InvalidArguments, UnknownTool
from openenv_gateway.mapping.contract import Contract
from openenv_gateway.mapping.faults import shortened, shown

_HANDLES = ("session_id", "openenv_session_id", "openenv_gateway_session_id")


class ToolKind(StrEnum):
    """What a call of a tool becomes."""

    RESET = "reset"
    STATE = "state"
    OBSERVE = "observe"
    STEP = "step"
    VARIANT = "variant"
    """A step with one variant of a union of actions."""
    CALL = "call"
    """A step that calls one of an MCP environment's own tools."""


class Handles(Enum):
    """Whether tools take the handle of a lane as an argument: never, if the agent likes, or always (save where it is got)."""

    NONE = "none"
    OPTIONAL = "optional"
    REQUIRED = "required"


@dataclass(frozen=True, slots=True, eq=False)
class Tool:
    """One tool. `input_schema` is advertised, without the handle; `contract` decides what arguments mean. `remote_name` is the
    tool's name in an MCP environment, None for all kinds but CALL."""

    kind: ToolKind
    name: str
    title: str
    description: str
    output_schema: JsonObject
    annotations: JsonObject
    contract: Contract
    remote_name: str | None = None

    @property
    def input_schema(self) -> JsonObject:
        return self.contract.advertised


class ToolSet:
    """An environment's tools in a fixed order. `handle_argument` is the name under which tools take a lane's handle: one that
    no tool has for itself."""

    def __init__(self, tools: Iterable[Tool], handle_life: str = "") -> None:
        self.tools = tuple(tools)
        self._handle_life = handle_life
        self._by_name = {tool.name: tool for tool in self.tools}
        used = {name for tool in self.tools for name in tool.contract.names}
        self.handle_argument = next(name for name in _HANDLES if name not in used)
        self._advertised = {handles: [self._describe(tool, handles) for tool in self.tools] for handles in Handles}

    def find(self, name: str) -> Tool:
        """The tool of that name. Raises UnknownTool, which names the nearest and all others."""
        tool = self._by_name.get(name)
        if tool is None:
            near = get_close_matches(name[:100], self._by_name, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise UnknownTool(f"There is no tool {shortened(name)!r}.{hint} Tools: {', '.join(self._by_name) or 'none'}")
        return tool

    def advertised(self, handles: Handles) -> list[JsonObject]:
        """The MCP Tool objects of `tools/list`. The same list every time: read it, do not change it."""
        return self._advertised[handles]

    def split_handle(self, arguments: Mapping[str, Any] | None) -> tuple[str | None, JsonObject]:
        """(the handle, the arguments without it). A handle that is null or blank is none, as hosts that must fill every
        argument send it. Raises InvalidArguments for a handle that is no string."""
        rest = dict(arguments or {})
        handle = rest.pop(self.handle_argument, None)
        if handle is not None and not isinstance(handle, str):
            raise InvalidArguments(f"{self.handle_argument} is not the string that an earlier result gave, but {shown(handle)}")
        return (handle.strip() or None if handle else None), rest

    def _describe(self, tool: Tool, handles: Handles) -> JsonObject:
        return {
            "name": tool.name,
            "title": tool.title,
            "description": tool.description,
            "inputSchema": tool.input_schema if handles is Handles.NONE else self._with_handle(tool, handles),
            "outputSchema": tool.output_schema,
            "annotations": tool.annotations,
        }

    def _with_handle(self, tool: Tool, handles: Handles) -> JsonObject:
        opens = tool.kind in (ToolKind.RESET, ToolKind.OBSERVE)
        needed = handles is Handles.REQUIRED and not opens
        schema = tool.input_schema
        words = " ".join([*_handle_words(tool.kind, handles, self._opener()), self._handle_life]).strip()
        properties = {**schema.get("properties", {}), self.handle_argument: {"type": "string", "description": words}}
        required = [*schema.get("required", ()), *([self.handle_argument] if needed else [])]
        return {**schema, "properties": properties, **({"required": required} if required else {})}

    def _opener(self) -> str:
        return next((tool.name for tool in self.tools if tool.kind in (ToolKind.RESET, ToolKind.OBSERVE)), "an earlier call")


def _handle_words(kind: ToolKind, handles: Handles, opener: str) -> list[str]:
    what = f"The handle of a session with its own episode, from the session_id in the result of {opener}."
    if handles is Handles.OPTIONAL:
        return [what, "Left out, this connection's own session is used."]
    match kind:
        case ToolKind.RESET:
            return [what, "With it, that session's episode starts anew; left out, a new session is opened."]
        case ToolKind.OBSERVE:
            return [what, "Left out, a new session is opened."]
    return [what]
