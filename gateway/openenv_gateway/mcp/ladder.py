"""Era and header checks of Streamable HTTP. Pure.

2026-07-28 repeats in headers what the body says, so that proxies can route; a server must refuse a request whose copies
disagree (HeaderMismatch). The order of the checks decides which error a client sees and is the specification's own.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from openenv_client.frames import JsonObject
from openenv_gateway.mcp.jsonrpc import HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, UNSUPPORTED_VERSION, RpcError
from openenv_gateway.mcp.revisions import CAPABILITIES_KEY, HANDSHAKE, LATEST_HANDSHAKE, MODERN, VERSION_KEY, Revision

ROUTING_HEADERS = frozenset({"mcp-protocol-version", "mcp-method", "mcp-name", "mcp-session-id"})
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Methods whose named thing is repeated in the header Mcp-Name, and the parameter that names it."""

_HANDSHAKE = {revision.value: revision for revision in HANDSHAKE}
_MODERN = {revision.value: revision for revision in MODERN}


def is_modern_request(version: str | None, body: Any) -> bool:
    """Whether the rules of 2026-07-28 apply: its version in the header, or an envelope in the body (then the header must
    agree, which the ladder checks)."""
    if version is not None and version in _MODERN:
        return True
    params = body.get("params") if isinstance(body, dict) else None
    meta = params.get("_meta") if isinstance(params, dict) else None
    return isinstance(meta, dict) and VERSION_KEY in meta


def handshake_revision(version: str | None) -> Revision:
    """The revision in the header of a handshake-era request without a session. Raises RpcError for one that is not spoken."""
    if version is None:
        return LATEST_HANDSHAKE
    if (revision := _HANDSHAKE.get(version)) is not None:
        return revision
    spoken = ", ".join(revision.value for revision in (*HANDSHAKE, *MODERN))
    raise RpcError(INVALID_REQUEST, f"Unsupported MCP-Protocol-Version {version[:40]!r}; spoken here: {spoken}")


def check_modern_version(version: Any) -> Revision:
    """The modern revision called `version`. Raises RpcError -32022 with what is supported."""
    if isinstance(version, str) and (revision := _MODERN.get(version)) is not None:
        return revision
    raise RpcError(
        UNSUPPORTED_VERSION,
        "Unsupported protocol version",
        {"supported": [revision.value for revision in MODERN], "requested": version},
    )


def climb(headers: Mapping[str, str], method: str, params: JsonObject) -> Revision:
    """Check one modern request's envelope and headers. `headers` are lower-case names with blanks stripped.

    Raises RpcError: -32602 for a missing envelope, -32020 for a header that disagrees, -32022 for another version.
    """
    meta = _envelope(params)
    version = meta[VERSION_KEY]
    _agree(headers, "mcp-protocol-version", version, "the envelope's protocol version")
    _agree(headers, "mcp-method", method, "the body's method")
    if (key := NAMED_BY.get(method)) is not None and (named := params.get(key)) is not None:
        _agree(headers, "mcp-name", named, f"the body's parameter {key!r}")
    return check_modern_version(version)


def envelope_revision(params: JsonObject) -> Revision:
    """The revision in a modern request's envelope, for transports without headers."""
    version = _envelope(params)[VERSION_KEY]
    if not isinstance(version, str):
        raise RpcError(INVALID_PARAMS, f"{VERSION_KEY} must be a string")
    return check_modern_version(version)


def _envelope(params: JsonObject) -> JsonObject:
    meta = params.get("_meta")
    missing = [key for key in (VERSION_KEY, CAPABILITIES_KEY) if not isinstance(meta, dict) or key not in meta]
    if missing or not isinstance(meta, dict):
        raise RpcError(INVALID_PARAMS, f"params._meta lacks the required {' and '.join(missing)}")
    return meta


def _agree(headers: Mapping[str, str], name: str, expected: Any, what: str) -> None:
    if (value := headers.get(name)) is None or decode_value(value) != expected:
        state = "is missing" if value is None else "does not match"
        raise RpcError(HEADER_MISMATCH, f"The header {name} {state}: it must repeat {what}")


def decode_value(value: str) -> str | None:
    """A header value, unwrapped from `=?base64?...?=` where it is wrapped. None when the wrapping is broken."""
    if not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    payload = value[len("=?base64?") : -len("?=")]
    try:
        raw = base64.b64decode(payload, validate=True)
        text = raw.decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return None
    return text if base64.b64encode(raw).decode() == payload else None
