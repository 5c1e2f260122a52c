"""The wire of `mode="production"`: MCP JSON-RPC over HTTP."""

from __future__ import annotations

from openenv_client.errors import OpenEnvError
from openenv_client.wire import Wire, WireOptions


async def open_wire(options: WireOptions) -> Wire:
    """Raises OpenEnvError: this protocol cannot be spoken yet."""
    raise OpenEnvError("mode='production' is not there yet: use mode='simulation' (also with the gateway's URL)")
