"""The MCP revisions that are spoken, and how a result is worded in each.

Handshake era: `initialize` first, sessions. 2026-07-28: every request carries its own envelope in `params._meta`.
"""

from __future__ import annotations

from enum import StrEnum

from openenv_client.frames import JsonObject
from openenv_gateway import __version__

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
SERVER_INFO_KEY = "io.modelcontextprotocol/serverInfo"

TOOLS_TTL_MS = 60_000
"""How long a client may keep discover and list results: long enough to save calls, short against a server's restart."""


class Revision(StrEnum):
    V2025_03_26 = "2025-03-26"
    V2025_06_18 = "2025-06-18"
    V2025_11_25 = "2025-11-25"
    V2026_07_28 = "2026-07-28"

    @property
    def is_modern(self) -> bool:
        return self is Revision.V2026_07_28


HANDSHAKE = (Revision.V2025_03_26, Revision.V2025_06_18, Revision.V2025_11_25)
LATEST_HANDSHAKE = Revision.V2025_11_25
MODERN = (Revision.V2026_07_28,)


def negotiate(requested: str) -> Revision:
    """The revision that `initialize` answers: the requested one when it is spoken, else the newest with a handshake."""
    return next((revision for revision in HANDSHAKE if revision == requested), LATEST_HANDSHAKE)


def server_info(environment: str) -> JsonObject:
    return {"name": "openenv-gateway", "title": f"OpenEnv: {environment}", "version": __version__}


def word_result(result: JsonObject, revision: Revision, environment: str, *, cacheable: bool = False) -> JsonObject:
    """`result` as `revision` has it: modern results say that they are complete, who made them, how long they may be kept."""
    if not revision.is_modern:
        return result
    meta = {SERVER_INFO_KEY: server_info(environment), **result.get("_meta", {})}
    worded = {**result, "resultType": "complete", "_meta": meta}
    return {**worded, "ttlMs": TOOLS_TTL_MS, "cacheScope": "private"} if cacheable else worded


def word_tool(tool: JsonObject, revision: Revision) -> JsonObject:
    """A tool as `revision` has it: structured output and titles exist from 2025-06-18 on."""
    if revision is not Revision.V2025_03_26:
        return tool
    return {key: value for key, value in tool.items() if key not in ("outputSchema", "title")}


def word_call_result(result: JsonObject, revision: Revision) -> JsonObject:
    """A tool result as `revision` has it: structuredContent exists from 2025-06-18 on."""
    if revision is not Revision.V2025_03_26:
        return result
    return {key: value for key, value in result.items() if key != "structuredContent"}
