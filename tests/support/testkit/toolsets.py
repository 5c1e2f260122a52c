"""Tool sets of the recorded environments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from openenv_client.description import Description
from openenv_client.frames import JsonObject
from openenv_gateway.mapping.options import MappingOptions
from openenv_gateway.mapping.tools import ToolSet, build_tools
from testkit import catalog


def listed_tools(env: str) -> list[JsonObject]:
    """What the environment's recorded `list_tools` step answered; empty if it was never asked."""
    for exchange in catalog.steps(env):
        observation = exchange.recv["data"].get("observation", {})
        if exchange.send["data"] == {"type": "list_tools"} and observation.get("tools"):
            return list(observation["tools"])
    return []


def recorded(env: str, options: MappingOptions | None = None) -> ToolSet:
    """The tools of a recorded environment."""
    return build_tools(catalog.description(env), options or MappingOptions(), listed_tools(env))


def made_of(action: JsonObject, **description: Any) -> ToolSet:
    """The tools of an environment with this action schema."""
    return build_tools(Description(action=action, observation={}, **description), MappingOptions())


def calls(env: str) -> Iterator[tuple[JsonObject, str, Any, bool]]:
    """Every recorded step as (action, tool name, arguments, whether the server took it for an action)."""
    for exchange in catalog.steps(env):
        action = exchange.send["data"]
        if isinstance(action, dict) and action.get("type") != "list_tools":
            taken = exchange.recv["type"] == "observation" or exchange.recv["data"].get("code") == "EXECUTION_ERROR"
            if "tool_name" in action:
                yield action, action["tool_name"], action.get("arguments"), taken
            else:
                yield action, "step", action, taken
