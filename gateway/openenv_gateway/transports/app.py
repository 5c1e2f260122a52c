"""The HTTP application: which route leads where."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import ASGIApp

from openenv_client.frames import JsonObject
from openenv_gateway.transports.access import Access
from openenv_gateway.transports.gate import Gate
from openenv_gateway.transports.gateway import Gateway
from openenv_gateway.transports.guards import HostGuard
from openenv_gateway.transports.openenv_http import http_routes
from openenv_gateway.transports.openenv_ws import OperatorSocket
from openenv_gateway.transports.streamable_http import StreamableHttp
from openenv_gateway.transports.websocket import McpSocket
from openenv_gateway.transports.withdrawal import Withdrawals
from openenv_gateway_schemas import names, raw

SHOWN, LONGEST = 20, 100
"""Environments, and characters of a path, in the answer to a path that leads nowhere."""

Page = Callable[[Request], Awaitable[Response]]


def build_app(gateway: Gateway) -> ASGIApp:
    """The ASGI application of a running gateway. One environment is served at the root too; several only under /envs.

    Raises BadTokenFile.
    """
    settings = gateway.settings
    access = Access.of(settings)
    withdrawals = Withdrawals(access)
    routes: list[BaseRoute] = [
        Route("/health", _health),
        Route("/ready", _ready_page(gateway, access)),
        Route("/schemas/{name}.schema.json", _schema),
    ]
    places: dict[str, ASGIApp] = {}
    for name, endpoint in gateway.endpoints.items():
        mcp = StreamableHttp(endpoint, settings.max_body_bytes, withdrawals)
        for prefix in (f"/envs/{name}", "") if len(gateway.endpoints) == 1 else (f"/envs/{name}",):
            places[f"{prefix}/mcp"] = mcp
            routes.append(Route(f"{prefix}/mcp", mcp))  # also for what Starlette does about a slash at the end
            routes.append(WebSocketRoute(f"{prefix}/mcp", McpSocket(endpoint)))
            routes.append(WebSocketRoute(f"{prefix}/ws", OperatorSocket(endpoint)))
            routes += http_routes(endpoint.environment, prefix, settings.max_body_bytes)
    guard = HostGuard.of(settings.allowed_hosts, settings.allowed_origins)
    app = Starlette(routes=routes, exception_handlers={404: _nothing_there(gateway)})
    return Gate(app, guard, access, withdrawals, places)


def _json(value: Any, status: int = 200) -> Response:
    return Response(orjson.dumps(value), status, media_type="application/json")


async def _health(request: Request) -> Response:
    return _json({"status": "healthy"})


def _ready_page(gateway: Gateway, access: Access) -> Page:
    async def ready(request: Request) -> Response:
        healthy = await asyncio.gather(*(endpoint.environment.is_healthy() for endpoint in gateway.endpoints.values()))
        environments = dict(zip(gateway.endpoints, healthy, strict=True))
        is_ready = all(environments.values()) and not gateway.draining
        page: JsonObject = {"ready": is_ready, "draining": gateway.draining, "environments": environments}
        if access.knows([value.encode("latin-1") for value in request.headers.getlist("authorization")]):
            page["details"] = {name: one.environment.lanes.pool.status().as_json() for name, one in gateway.endpoints.items()}
        return _json(page, 200 if is_ready else 503)

    return ready


def _nothing_there(gateway: Gateway) -> Callable[[Request, Exception], Awaitable[Response]]:
    """What is said of a path that leads nowhere: which ones lead somewhere."""
    served = [f"/envs/{name}/mcp" for name in list(gateway.endpoints)[:SHOWN]]

    async def nothing_there(request: Request, error: Exception) -> Response:
        more = f" and {len(gateway.endpoints) - SHOWN} more" if len(gateway.endpoints) > SHOWN else ""
        path = request.url.path
        shown = path if len(path) <= LONGEST else path[:LONGEST] + "…"
        said = f"There is nothing at {shown}. MCP is at {', '.join(served)}{more}; /ready says how the environments are."
        return _json({"error": said}, 404)

    return nothing_there


async def _schema(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in names():
        return _json({"error": f"No schema {name[:60]!r}; published: {', '.join(names())}"}, 404)
    return Response(raw(name), media_type="application/schema+json")
