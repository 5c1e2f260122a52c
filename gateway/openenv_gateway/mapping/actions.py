"""From a tool and its arguments to the one request that the environment gets. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from openenv_client.frames import JsonObject
from openenv_gateway.errors import InvalidArguments
from openenv_gateway.mapping.faults import Fault, shown
from openenv_gateway.mapping.fitting import Unfit
from openenv_gateway.mapping.toolset import Tool, ToolKind

RequestKind = Literal["reset", "step", "state", "observe"]

MAX_EXAMPLE = 1_000
"""Characters of an example in an error. A longer one is left out."""

_KINDS: dict[ToolKind, RequestKind] = {
    ToolKind.RESET: "reset",
    ToolKind.STATE: "state",
    ToolKind.OBSERVE: "observe",
    ToolKind.STEP: "step",
    ToolKind.VARIANT: "step",
    ToolKind.CALL: "step",
}


class Request(NamedTuple):
    """What a call asks of the environment: `data` are reset's arguments or step's action, empty for state and observe.
    `observe` is answered from the latest observation and never sent."""

    kind: RequestKind
    data: JsonObject


def to_request(tool: Tool, arguments: Mapping[str, Any] | None) -> Request:
    """The request for a call, its arguments coerced, translated and checked by the environment's own schema.

    `arguments` are without the lane's handle (see `ToolSet.split_handle`). Raises InvalidArguments, which says where, what was
    expected, what came, and shows arguments that would pass; then nothing has been sent.
    """
    try:
        data = tool.contract.read(_object(arguments))
    except Unfit as error:
        raise InvalidArguments(_message(tool, error.fault)) from None
    if tool.kind is ToolKind.CALL:
        data = {"type": "call_tool", "tool_name": tool.remote_name, "arguments": data}
    return Request(_KINDS[tool.kind], data)


def _object(arguments: object) -> Mapping[str, Any]:
    if type(arguments) is dict:
        return arguments
    if arguments is None:
        return {}
    if not isinstance(arguments, Mapping):
        raise Unfit(Fault("a JSON object with the arguments", arguments))
    return arguments


def _message(tool: Tool, fault: Fault) -> str:
    place = f" at {fault.place}" if fault.place else ""
    text = f"The arguments do not fit the tool {tool.name}:{place} expected {fault.expected}, got {shown(fault.found)}."
    example = tool.contract.example([key for key in fault.path[:1] if isinstance(key, str)])
    if example is not None:
        shape = json.dumps(example, ensure_ascii=False)
        text += f" Arguments that would pass: {shape}" if len(shape) <= MAX_EXAMPLE else ""
    return text
