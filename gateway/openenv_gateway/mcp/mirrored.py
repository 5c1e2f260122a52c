"""Arguments that a request repeats in its HTTP headers must be the same there (MCP 2026-07-28, `x-mcp-header`).

Whoever routed the request by its headers, and we who act on its body, must not have read different things.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from openenv_client.errors import OpenEnvError
from openenv_client.frames import JsonObject
from openenv_gateway.errors import GatewayError
from openenv_gateway.mapping.mirrors import Mirror
from openenv_gateway.mcp.jsonrpc import HEADER_MISMATCH, RpcError
from openenv_gateway.mcp.ladder import decode_value
from openenv_gateway.sessions.environment import Environment


class Fields(Protocol):
    """A request's headers, see transports.headers."""

    def get(self, name: str) -> str | None: ...

    def doubled(self, names: frozenset[str]) -> str | None: ...


async def check_mirrors(environment: Environment, params: JsonObject, headers: Fields) -> None:
    """Raises RpcError HeaderMismatch if a `tools/call` and its headers `Mcp-Param-*` disagree. A call that will fail anyway
    (no such tool, no environment, arguments that are no object) passes: its own error says more."""
    name, arguments = params.get("name"), params.get("arguments") or {}
    if not isinstance(name, str) or not isinstance(arguments, Mapping):
        return
    try:
        mirrors = (await environment.tools()).find(name).contract.mirrors
    except (OpenEnvError, GatewayError):
        return
    if (doubled := headers.doubled(frozenset(mirror.header for mirror in mirrors))) is not None:
        raise RpcError(HEADER_MISMATCH, f"The header {doubled} appears more than once")
    for mirror in mirrors:
        check_mirror(mirror, arguments, headers.get(mirror.header))


def check_mirror(mirror: Mirror, arguments: Mapping[str, Any], header: str | None) -> None:
    """Raises RpcError HeaderMismatch if one argument and its header are not the same: both there, or neither."""
    value, argument = mirror.value_in(arguments), ".".join(mirror.path)
    if value is None and header is None:
        return
    if header is None:
        raise RpcError(HEADER_MISMATCH, f"The header {mirror.header} is missing: it must repeat the argument {argument!r}")
    decoded = decode_value(header)
    if value is None or decoded is None or not mirror.agrees(value, decoded):
        raise RpcError(HEADER_MISMATCH, f"The header {mirror.header} does not repeat the argument {argument!r}")
