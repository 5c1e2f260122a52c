"""`completion/complete`: what can stand in the prompt's arguments and in the variables of the resource template.

A session's reading key is completed only for whoever plays on that session, so nobody learns a key that is not theirs.
"""

from __future__ import annotations

from collections.abc import Iterable

from openenv_client.frames import JsonObject
from openenv_gateway.mcp.caller import Caller
from openenv_gateway.mcp.jsonrpc import INVALID_PARAMS, RpcError
from openenv_gateway.mcp.prompts import PLAY, TOOL
from openenv_gateway.mcp.resources import NEWEST, latest_uri
from openenv_gateway.sessions.environment import Environment
from openenv_gateway.sessions.lane import Lane
from openenv_gateway.sessions.phases import Phase

MAX_VALUES = 100
"""More than these a completion may not hold, says the specification."""


async def complete(environment: Environment, caller: Caller, params: JsonObject) -> JsonObject:
    """The CompleteResult: no values for a prompt, template or argument that is unknown or free. Raises RpcError for params
    that are malformed, and what asking the environment raises."""
    ref, argument = params.get("ref"), params.get("argument")
    match argument:
        case {"name": str(name), "value": str(typed)}:
            pass
        case _:
            raise RpcError(INVALID_PARAMS, 'completion/complete needs "argument" with "name" and "value", both strings')
    match ref:
        case {"type": "ref/prompt", "name": str(prompt)}:
            known = await _of_prompt(environment, prompt, name)
        case {"type": "ref/resource", "uri": str(uri)}:
            known = _of_template(environment, caller, uri, name, _context(params))
        case _:
            wanted = 'a ref/prompt with "name" or a ref/resource with "uri"'
            raise RpcError(INVALID_PARAMS, f'completion/complete needs "ref", {wanted}')
    return {"completion": _completion(known, typed)}


async def _of_prompt(environment: Environment, prompt: str, argument: str) -> list[str]:
    if (prompt, argument) != (PLAY, TOOL):
        return []
    return [tool.name for tool in (await environment.tools()).tools]


def _of_template(environment: Environment, caller: Caller, uri: str, variable: str, context: JsonObject) -> list[str]:
    latest = environment.lanes.latest
    if uri != latest_uri(environment.name):
        return []
    if variable == "key":
        return [latest.shelf(lane).key for lane in _own_lanes(environment, caller)]
    key = context.get("key")
    shelf = latest.find(key, caller.principal) if isinstance(key, str) else None
    if variable != "number" or shelf is None:
        return []
    return [NEWEST, *map(str, reversed(shelf.numbers))]


def _own_lanes(environment: Environment, caller: Caller) -> list[Lane]:
    """The lanes that this caller's connection plays on, the default one first."""
    named = None if caller.lane_name is None else environment.lanes.known(caller.principal, caller.lane_name)
    session = caller.session
    of_session: Iterable[Lane | None] = () if session is None else (session.lane, *session.lanes)
    lanes = dict.fromkeys(lane for lane in (named, *of_session) if lane is not None)
    return [lane for lane in lanes if lane.phase is not Phase.CLOSED]


def _context(params: JsonObject) -> JsonObject:
    match params.get("context"):
        case {"arguments": dict(arguments)}:
            return arguments
    return {}


def _completion(known: list[str], typed: str) -> JsonObject:
    """What begins with what was typed, then what has it elsewhere; upper and lower case alike."""
    low = typed.lower()
    first = [value for value in known if value.lower().startswith(low)]
    found = [*first, *(value for value in known if low in value.lower() and value not in first)]
    return {"values": found[:MAX_VALUES], "total": len(found), "hasMore": len(found) > MAX_VALUES}
