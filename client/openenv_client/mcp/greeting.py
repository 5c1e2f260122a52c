"""Who answers at a URL: the gateway, in the newer or the older era of MCP, or an OpenEnv server by itself. Found out once.

`server/discover` is asked first, then `initialize`. A server that knows neither may be OpenEnv's own, whose `/mcp` has a few
methods that are MCP's by name only.
"""

from __future__ import annotations

from openenv_client.errors import NotAnEnvironment
from openenv_client.mcp.endpoint import Endpoint
from openenv_client.mcp.peer import (
    CLIENT,
    HANDSHAKE,
    METHOD_NOT_FOUND,
    MODERN,
    Handshake,
    Modern,
    Peer,
    RpcFault,
    Unframed,
)
from openenv_client.urls import http_url

_REFUSALS = (401, 403)
_NOTHING_THERE = (404, 405)


class NothingThere(NotAnEnvironment):
    """No JSON-RPC is spoken at this URL."""


def endpoint_urls(base_url: str) -> list[str]:
    """Where `/mcp` may be for a base URL: below it; for one that ends in `/mcp` there first, as it may be the endpoint itself.

    Raises ValueError for what is no server's URL, and for one with a query.
    """
    url = http_url(base_url)
    if "?" in base_url:
        raise ValueError(
            f"Invalid server URL {base_url!r}: in production mode it has no query. A client has an environment session of its "
            "own (so leave ?session=NAME out); what a proxy wants to know goes into headers"
        )
    below = f"{url}/mcp"
    return [url, below] if url.endswith("/mcp") else [below]


async def greet(endpoint: Endpoint) -> Peer:
    """The peer at an endpoint; its dialect is Unframed for an OpenEnv server by itself.

    Raises NothingThere, NotAnEnvironment, and what `Endpoint.post` raises.
    """
    try:
        discovered = await Peer(endpoint, Modern()).request("server/discover", {})
    except RpcFault as fault:
        _check_access(endpoint, fault)
        if fault.code is None and fault.status in _NOTHING_THERE:
            raise NothingThere(endpoint.shown, f"nothing there speaks MCP ({fault.message})") from fault
    else:
        if MODERN in discovered.get("supportedVersions", ()):
            return Peer(endpoint, Modern())
    return await _initialized(endpoint)


async def _initialized(endpoint: Endpoint) -> Peer:
    hello = {"protocolVersion": HANDSHAKE[0], "capabilities": {}, "clientInfo": CLIENT}
    try:
        result, headers = await Peer(endpoint, Unframed()).answer("initialize", hello)
    except RpcFault as fault:
        if fault.code == METHOD_NOT_FOUND:
            return Peer(endpoint, Unframed())
        raise NotAnEnvironment(endpoint.shown, f"it refused to initialize MCP: {fault.message}") from fault
    version = result.get("protocolVersion")
    if version not in HANDSHAKE:
        spoken = ", ".join((MODERN, *HANDSHAKE))
        raise NotAnEnvironment(endpoint.shown, f"it speaks MCP {version}; this client speaks {spoken}")
    peer = Peer(endpoint, Handshake(version, headers.get("mcp-session-id")))
    await peer.notify("notifications/initialized")
    return peer


def _check_access(endpoint: Endpoint, fault: RpcFault) -> None:
    if fault.status in _REFUSALS:
        hint = 'give the client headers={"Authorization": "Bearer TOKEN"} with a token that may use it'
        raise NotAnEnvironment(endpoint.shown, f"access refused: {fault.message}; {hint}") from fault
