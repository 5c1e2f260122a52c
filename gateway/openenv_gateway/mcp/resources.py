"""Resources: what an environment says about itself, and what was too large to be shown in a result.

    openenv://ENV/readme                    its readme, or its description when it has none
    openenv://ENV/schema                    its action, observation and state schemas, as its server gives them
    openenv://ENV/latest/KEY/NUMBER         one result of a session, whole (sessions.latest); NUMBER as results tell it
    openenv://ENV/latest/KEY/newest         the newest observation of that session, whether or not it was cut

There are no subscriptions to them (resources/subscribe): what a server says changes only when it is started anew, which
tools/list_changed tells; a kept result never changes; and the newest observation changes only by the reader's own calls.
"""

from __future__ import annotations

from dataclasses import replace

from openenv_client.description import Description
from openenv_client.frames import JsonObject
from openenv_gateway.mapping.cuts import encode
from openenv_gateway.mapping.results import Notes, observation_result
from openenv_gateway.mapping.whole import JSON
from openenv_gateway.mcp.caller import Caller
from openenv_gateway.mcp.jsonrpc import INVALID_PARAMS, RpcError
from openenv_gateway.sessions.environment import Environment
from openenv_gateway.sessions.latest import Shelf

NEWEST = "newest"
MARKDOWN = "text/markdown"
_UNLIMITED = 2**62


def readme_uri(environment: str) -> str:
    return f"openenv://{environment}/readme"


def schema_uri(environment: str) -> str:
    return f"openenv://{environment}/schema"


def latest_uri(environment: str, key: str = "{key}", number: int | str = "{number}") -> str:
    """Where one result of a lane can be read; without key and number the template of all of them."""
    return f"openenv://{environment}/latest/{key}/{number}"


async def list_resources(environment: Environment) -> list[JsonObject]:
    """What can be read without a session: the same for every caller. Raises what asking the environment raises."""
    described = await _described(environment)
    name, listed = environment.name, []
    if (about := _readme(described)) is not None:
        listed.append({
            "uri": readme_uri(name),
            "name": "readme",
            "title": f"About {name}",
            "description": f"What the environment {name} says about itself.",
            "mimeType": MARKDOWN,
            "size": len(about.encode()),
        })
    listed.append({
        "uri": schema_uri(name),
        "name": "schema",
        "title": f"Schemas of {name}",
        "description": f"The JSON Schemas of the actions, observations and states of {name}, as its server gives them.",
        "mimeType": JSON,
        "size": len(encode(_schemas(described))),
    })
    return listed


def list_templates(environment: Environment) -> list[JsonObject]:
    """The template of what can be read of a session."""
    return [{
        "uriTemplate": latest_uri(environment.name),
        "name": "latest",
        "title": f"Latest results in {environment.name}",
        "description": (
            'A result that was too large to be shown, whole: results name its URI as "read" in {"$cut": …}, with the key of '
            f'their session. The number "{NEWEST}" is the newest observation. The last few results are kept.'
        ),
    }]


async def read_resource(environment: Environment, caller: Caller, params: JsonObject) -> JsonObject:
    """{"contents": […]} of `params["uri"]`. Raises RpcError -32602, with the URI as data, for what the caller cannot read."""
    uri = params.get("uri")
    if not isinstance(uri, str):
        raise RpcError(INVALID_PARAMS, 'resources/read needs "uri", a string')
    name = environment.name
    if uri == schema_uri(name):
        return _text(uri, JSON, encode(_schemas(await _described(environment))).decode())
    if uri == readme_uri(name):
        if (about := _readme(await _described(environment))) is None:
            raise _unknown(uri, "this environment says nothing about itself; its schema can be read")
        return _text(uri, MARKDOWN, about)
    match uri.removeprefix(f"openenv://{name}/latest/").split("/"):
        case [key, number] if (shelf := environment.lanes.latest.find(key, caller.principal)) is not None:
            return {"contents": _kept(environment, shelf, number, uri)}
    raise _unknown(uri, "resources/list names what there is; a session's results are gone when it has ended")


def _kept(environment: Environment, shelf: Shelf, number: str, uri: str) -> list[JsonObject]:
    if number == NEWEST and shelf.lane.latest is not None:
        options = replace(environment.settings.mapping, max_result_bytes=_UNLIMITED, text="json")
        return _contents(observation_result(shelf.lane.latest, options, Notes()), uri)
    parts = shelf.results.get(int(number)) if number.isdecimal() and len(number) < 10 else None
    if parts is None:
        raise _unknown(uri, f'only the latest results are kept; the newest observation has the number "{NEWEST}"')
    return [part.contents(uri) for part in parts]


def _contents(result: JsonObject, uri: str) -> list[JsonObject]:
    """A whole result as contents: `{"$content": n}` counts them as it counts a result's blocks."""
    return [
        {"uri": uri, "mimeType": JSON, "text": block["text"]}
        if block["type"] == "text"
        else {"uri": uri, "mimeType": block["mimeType"], "blob": block["data"]}
        for block in result["content"]
    ]


async def _described(environment: Environment) -> Description:
    await environment.tools()
    assert environment.description is not None, "who knows the tools has read the description"
    return environment.description


def _readme(described: Description) -> str | None:
    return described.readme or described.summary


def _schemas(described: Description) -> JsonObject:
    schemas = {"action": described.action, "observation": described.observation, "state": described.state}
    return schemas if described.reset is None else {**schemas, "reset": described.reset}


def _text(uri: str, mime_type: str, text: str) -> JsonObject:
    return {"contents": [{"uri": uri, "mimeType": mime_type, "text": text}]}


def _unknown(uri: str, why: str) -> RpcError:
    return RpcError(INVALID_PARAMS, f"Resource not found: {why}", {"uri": uri})
