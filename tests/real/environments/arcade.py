"""All environments behind one server, each under a path of its own.

The framework takes seconds to start, a further environment in the same process takes none. Every part is a server of the
framework's own with its routes (`/counter/ws`, `/counter/schema` …), so the base URL of one is `http://HOST:PORT/counter`.
"""

from __future__ import annotations

import counter
import faulty
import gallery
import shapes
import toolbox
from framework import serve
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route

FAULTS = ("factory", "reset_raises", "reset_error", "no_schema", "no_ws", "no_health")


async def health(request: Request) -> JSONResponse:
    return JSONResponse({"status": "healthy"})


app = Starlette(
    routes=[
        Route("/health", health),
        Mount("/counter", counter.app),
        Mount("/duo", serve(counter.CounterEnvironment, counter.CounterAction, counter.CounterObservation, sessions=2)),
        Mount("/solo", serve(counter.CounterEnvironment, counter.CounterAction, counter.CounterObservation, sessions=1)),
        Mount("/shapes", shapes.app),
        Mount("/plain_shapes", shapes.plain_app),
        Mount("/toolbox", toolbox.app),
        Mount("/gallery", gallery.app),
        Mount("/faulty", faulty.app),
        *[Mount(f"/{fault}", faulty.serve_with(fault)) for fault in FAULTS],
    ]
)
