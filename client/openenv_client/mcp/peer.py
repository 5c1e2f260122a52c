"""The far end as one of MCP's two eras has it: how a request is framed, and what its answer means."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from openenv_client import __version__
from openenv_client.errors import BadReply
from openenv_client.frames import JsonObject
from openenv_client.mcp.endpoint import Answer, Endpoint

MODERN: Final = "2026-07-28"
HANDSHAKE: Final = ("2025-11-25", "2025-06-18")
"""The revisions that are spoken. Before 2025-06-18 results have no structured content, which observations come in."""

METHOD_NOT_FOUND: Final = -32601
VERBATIM: Final = "openenv/verbatim"

CLIENT: Final[JsonObject] = {"name": "openenv-client", "version": __version__}
_META: Final[JsonObject] = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": CLIENT,
}


class RpcFault(Exception):
    """A request that was answered by an error. `code` and `data` are the JSON-RPC error's, None for a bare HTTP status."""

    def __init__(self, status: int, message: str, code: int | None = None, data: Any = None) -> None:
        super().__init__(message)
        self.status, self.message, self.code, self.data = status, message, code, data


@dataclass(frozen=True)
class Modern:
    """2026-07-28: no session; each request says in its body and its headers what it is."""

    def framed(self, method: str, params: JsonObject) -> tuple[JsonObject, dict[str, str]]:
        """The parameters and headers of one request."""
        headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
        if method == "tools/call":
            headers["Mcp-Name"] = header_value(params["name"])
        return {**params, "_meta": {**params.get("_meta", {}), **_META}}, headers


@dataclass(frozen=True)
class Handshake:
    """The revisions before: a session, which `initialize` opened."""

    version: str
    session_id: str | None

    def framed(self, method: str, params: JsonObject) -> tuple[JsonObject, dict[str, str]]:
        """The parameters and headers of one request."""
        session = {} if self.session_id is None else {"Mcp-Session-Id": self.session_id}
        return params, {"MCP-Protocol-Version": self.version, **session}


@dataclass(frozen=True)
class Unframed:
    """OpenEnv's own JSON-RPC, and the first message of a handshake."""

    def framed(self, method: str, params: JsonObject) -> tuple[JsonObject, dict[str, str]]:
        """The parameters and headers of one request."""
        return params, {}


_NONE: Final[Mapping[str, str]] = MappingProxyType({})

Dialect = Modern | Handshake | Unframed


class Peer:
    """Sends requests to one endpoint in one dialect, and numbers them."""

    def __init__(self, endpoint: Endpoint, dialect: Dialect) -> None:
        self.endpoint, self.dialect = endpoint, dialect
        self._ids = itertools.count(1)

    def __repr__(self) -> str:
        return f"<Peer {self.endpoint.shown} {self.dialect!r}>"

    async def request(self, method: str, params: JsonObject, mirrored: Mapping[str, str] = _NONE) -> JsonObject:
        """The result of one request. `mirrored` are headers that repeat some of its arguments, as 2026-07-28 wants it. Raises
        RpcFault, and what `Endpoint.post` raises."""
        return (await self.answer(method, params, mirrored))[0]

    async def answer(
        self, method: str, params: JsonObject, mirrored: Mapping[str, str] = _NONE
    ) -> tuple[JsonObject, Mapping[str, str]]:
        """The result of one request, and the headers of its answer."""
        params, headers = self.dialect.framed(method, params)
        if isinstance(self.dialect, Modern):
            headers.update((name, header_value(text)) for name, text in mirrored.items())
        message = {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params}
        answer = await self.endpoint.post(message, headers)
        return _result(answer), answer.headers

    async def notify(self, method: str) -> None:
        """Send a notification. Raises RpcFault if it is not accepted."""
        params, headers = self.dialect.framed(method, {})
        answer = await self.endpoint.post({"jsonrpc": "2.0", "method": method, "params": params}, headers)
        if answer.status >= 400:
            _result(answer)

    async def end(self) -> None:
        """End the MCP session, if there is one."""
        if isinstance(self.dialect, Handshake) and self.dialect.session_id is not None:
            await self.endpoint.delete(self.dialect.framed("", {})[1])


def header_value(text: str) -> str:
    """A text as the value of a header of 2026-07-28: wrapped in base64 unless it is plain ASCII without blanks around it."""
    if text.isascii() and text.isprintable() and text == text.strip() and not text.startswith("=?base64?"):
        return text
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


def _result(answer: Answer) -> JsonObject:
    if answer.message is None:
        if answer.status < 400:
            raise BadReply("the answer", f"no JSON-RPC response: {answer.excerpt!r}")
        raise RpcFault(answer.status, f"HTTP {answer.status}{': ' if answer.excerpt else ''}{answer.excerpt}")
    result = answer.message.get("result")
    if isinstance(result, dict):
        return result
    error = answer.message.get("error")
    if not isinstance(error, dict):
        raise BadReply("the result", f"{type(result).__name__}, not an object")
    code = error.get("code")
    raise RpcFault(answer.status, str(error.get("message")), code if isinstance(code, int) else None, error.get("data"))
