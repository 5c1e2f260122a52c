"""The wire of `mode="production"`: MCP JSON-RPC over HTTP to the gateway, or what an OpenEnv server alone has of it.

`base_url` is the environment's URL (`http://HOST:8700/envs/NAME`), the same with `/mcp`, or the gateway's own URL where it
serves one environment.
"""

from __future__ import annotations

from collections.abc import Sequence

from openenv_client.errors import ConnectFailed, EpisodeLost, OpenEnvError, ServerUnreachable, SessionRefused
from openenv_client.mcp.bare_wire import open_bare_wire
from openenv_client.mcp.bounded import Overdue, within
from openenv_client.mcp.endpoint import Endpoint
from openenv_client.mcp.gateway_wire import GatewayWire
from openenv_client.mcp.greeting import NothingThere, endpoint_urls, greet
from openenv_client.mcp.peer import Peer, Unframed
from openenv_client.threads import finish
from openenv_client.wire import Wire, WireOptions


async def open_wire(options: WireOptions) -> Wire:
    """Find out who answers at the URL, and open the wire to it.

    Raises ConnectFailed, whose message says what to do; CapacityReached or FactoryFailed for a server without gateway that has
    no session (the gateway tells that at the first call); ValueError for a URL that is none of a server.
    """
    endpoints = [Endpoint(url, options) for url in endpoint_urls(options.base_url)]
    try:
        peer = await _peer(endpoints, options.connect_timeout_s)
        await _closed([endpoint for endpoint in endpoints if endpoint is not peer.endpoint])
        # Nothing is awaited after a wire was made: a cancellation would lose it.
        return await open_bare_wire(peer, options) if isinstance(peer.dialect, Unframed) else GatewayWire(peer, options)
    except BaseException as error:
        await finish(_closed(endpoints))
        if isinstance(error, EpisodeLost):  # there is none yet
            error = ServerUnreachable(endpoints[-1].shown, error.reason)
        if isinstance(error, OpenEnvError) and not isinstance(error, (SessionRefused, ConnectFailed)):
            raise ConnectFailed(endpoints[-1].shown, error) from error
        raise


async def _peer(endpoints: Sequence[Endpoint], timeout_s: float) -> Peer:
    try:
        return await within(_first(endpoints), timeout_s)
    except Overdue as error:
        raise ServerUnreachable(endpoints[-1].shown, f"no answer within {timeout_s:g} s") from error


async def _first(endpoints: Sequence[Endpoint]) -> Peer:
    *others, last = endpoints
    for endpoint in others:
        try:
            return await greet(endpoint)
        except NothingThere:
            continue
    return await greet(last)


async def _closed(endpoints: Sequence[Endpoint]) -> None:
    for endpoint in endpoints:
        await endpoint.aclose()
