"""Prompts: one for each environment, `play`, which explains how to play it."""

from __future__ import annotations

from openenv_client.frames import JsonObject
from openenv_gateway.errors import UnknownTool
from openenv_gateway.mapping.guide import Guide
from openenv_gateway.mcp.caller import Caller
from openenv_gateway.mcp.jsonrpc import INVALID_PARAMS, RpcError
from openenv_gateway.mcp.resources import list_resources
from openenv_gateway.sessions.environment import Environment

PLAY = "play"
TOOL, GOAL = "tool", "goal"


def list_prompts(environment: Environment) -> list[JsonObject]:
    """The same for every caller; asks no server."""
    return [{
        "name": PLAY,
        "title": f"Play {environment.name}",
        "description": (
            f"How to play the environment {environment.name}: what it is, its tools, what can be read about it, and when an "
            "episode is over."
        ),
        "arguments": [
            {"name": GOAL, "description": "What the player shall achieve, in your words.", "required": False},
            {"name": TOOL, "description": "The name of a tool to be explained in full.", "required": False},
        ],
    }]


async def get_prompt(environment: Environment, caller: Caller, params: JsonObject) -> JsonObject:
    """The GetPromptResult. Raises RpcError -32602 for another prompt or an argument that does not fit, and what asking the
    environment raises."""
    name = params.get("name")
    if not isinstance(name, str):
        raise RpcError(INVALID_PARAMS, 'prompts/get needs "name", a string')
    if name != PLAY:
        raise RpcError(INVALID_PARAMS, f"There is no prompt {name[:64]!r}. Prompts: {PLAY}")
    arguments = _arguments(params.get("arguments"))
    text = await _play(environment, caller, arguments)
    (listed,) = list_prompts(environment)
    message = {"role": "user", "content": {"type": "text", "text": text}}
    return {"description": listed["description"], "messages": [message]}


async def _play(environment: Environment, caller: Caller, arguments: dict[str, str]) -> str:
    tools, resources = await environment.tools(), await list_resources(environment)
    assert environment.description is not None, "who knows the tools has read the description"
    uris = [(resource["uri"], resource["description"]) for resource in resources]
    guide = Guide(environment.name, environment.description, environment.settings.mapping, tools, caller.handles, uris)
    try:
        tool = tools.find(arguments[TOOL]) if arguments.get(TOOL) else None
    except UnknownTool as error:
        raise RpcError(INVALID_PARAMS, str(error)) from error
    return guide.text(arguments.get(GOAL) or None, tool)


def _arguments(given: object) -> dict[str, str]:
    if given is None:
        return {}
    if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
        raise RpcError(INVALID_PARAMS, 'prompts/get takes "arguments" as an object whose values are strings')
    return given
