"""The MCP revisions that are spoken, and how a result is worded in each.

Handshake era: `initialize` first, sessions. 2026-07-28: every request carries its own envelope in `params._meta`.
"""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache

from openenv_client.frames import JsonObject
from openenv_gateway import __version__

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
SERVER_INFO_KEY = "io.modelcontextprotocol/serverInfo"

TTL_MS = 60_000
"""How long a client may keep what discover, lists and resources/read answer: long enough to save calls, short against a
server's restart."""


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


@lru_cache(256)
def server_info(environment: str) -> JsonObject:
    """Who answers. The same object every time: read it, do not change it."""
    return {"name": "openenv-gateway", "title": f"OpenEnv: {environment}", "version": __version__}


def word_result(result: JsonObject, revision: Revision, environment: str, *, ttl_ms: int | None = None) -> JsonObject:
    """`result` as `revision` has it: modern results say that they are complete and who made them; discover, lists and
    resources/read also how long they may be kept (`ttl_ms` milliseconds; None: not a result of that kind)."""
    if not revision.is_modern:
        return result
    meta = {SERVER_INFO_KEY: server_info(environment), **result.get("_meta", {})}
    worded = {**result, "resultType": "complete", "_meta": meta}
    return worded if ttl_ms is None else {**worded, "ttlMs": ttl_ms, "cacheScope": "private"}


def word_tool(tool: JsonObject, revision: Revision) -> JsonObject:
    """A tool as `revision` has it: structured output and titles exist from 2025-06-18 on."""
    return _without(tool, ("outputSchema", "title")) if revision is Revision.V2025_03_26 else tool


def word_listed(item: JsonObject, revision: Revision) -> JsonObject:
    """A resource, resource template or prompt as `revision` has it: titles exist from 2025-06-18 on."""
    return _without(item, ("title",)) if revision is Revision.V2025_03_26 else item


def word_call_result(result: JsonObject, revision: Revision) -> JsonObject:
    """A tool result as `revision` has it: structuredContent exists from 2025-06-18 on."""
    return _without(result, ("structuredContent",)) if revision is Revision.V2025_03_26 else result


def _without(item: JsonObject, keys: tuple[str, ...]) -> JsonObject:
    return {key: value for key, value in item.items() if key not in keys}
