"""One URL that takes JSON-RPC by POST: requests, whole answers, and what went wrong in between.

A request is sent once. Only where no connection could be made, so that nothing was sent, is it tried again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from openenv_client import __version__
from openenv_client.errors import BadReply, EpisodeLost, ServerUnreachable
from openenv_client.frames import JsonObject
from openenv_client.mcp.events import EventReader
from openenv_client.mcp.sending import send
from openenv_client.urls import is_loopback, shown
from openenv_client.wire import WireOptions

_PAUSES_S = (0.05, 0.2)
"""Before another attempt to connect: a server that is just restarted listens again soon."""

_IDLE_S = 2.0
"""How long an unused connection is kept: less than servers keep theirs (5 s, usually), so that no request is ever sent on one
that the server closes in that moment, of which nobody could say whether it was carried out."""

_EXCERPT = 300


@dataclass(frozen=True)
class Answer:
    """`message` is the JSON-RPC response, None where the body is none; `excerpt` is the beginning of the body."""

    status: int
    message: JsonObject | None
    excerpt: str
    headers: Mapping[str, str]


class Endpoint:
    """Keeps connections; belongs to the event loop on which it was made. Loopback is reached without the environment's
    proxies. `headers` go with every request."""

    def __init__(self, url: str, options: WireOptions) -> None:
        self.url = url
        self.shown = shown(url)
        self._limit = options.max_message_bytes
        self._connect_timeout_s = options.connect_timeout_s
        self._http = httpx.AsyncClient(
            headers={
                "User-Agent": f"openenv-client/{__version__}",
                **(options.headers or {}),
                "Accept": "application/json, text/event-stream",
                "Content-Type": "application/json",
            },
            verify=url.startswith("https:"),  # reading all certificates takes 20 ms, for nothing where there is no TLS
            trust_env=not is_loopback(url),
            timeout=httpx.Timeout(None, connect=options.connect_timeout_s),
            limits=httpx.Limits(keepalive_expiry=_IDLE_S),
        )

    async def post(self, message: JsonObject, headers: Mapping[str, str]) -> Answer:
        """Send one message and read what answers it.

        Raises ServerUnreachable (nothing was sent), EpisodeLost (it was sent, and the connection broke before the answer was
        whole), BadReply (the answer is too large). Cancelled, the connection is closed.
        """
        body = json.dumps(message, allow_nan=False, separators=(",", ":")).encode()
        async with self._exchange("POST", headers, body) as response:
            if response.headers.get("content-type", "").startswith("text/event-stream"):
                return await self._streamed(response, message.get("id"))
            return _answer(response, await self._body(response))

    async def delete(self, headers: Mapping[str, str]) -> None:
        """End the MCP session that the headers name. Raises as `post` does; whatever the answer is, it is over."""
        async with self._exchange("DELETE", headers, None):
            return

    async def aclose(self) -> None:
        """Close every connection."""
        await self._http.aclose()

    @asynccontextmanager
    async def _exchange(self, method: str, headers: Mapping[str, str], body: bytes | None) -> AsyncIterator[httpx.Response]:
        request = self._http.build_request(method, self.url, headers=dict(headers), content=body)
        response = await self._sent(request)
        try:
            yield response
        except (httpx.TransportError, httpx.DecodingError) as error:
            raise self._broken(error) from error
        finally:
            await response.aclose()

    async def _sent(self, request: httpx.Request) -> httpx.Response:
        for pause_s in (*_PAUSES_S, None):
            try:
                return await send(self._http, request)
            except httpx.ConnectError as error:
                if pause_s is None:
                    raise ServerUnreachable(self.shown, str(error) or "the connection was refused") from error
                await asyncio.sleep(pause_s)
            except (httpx.ConnectTimeout, httpx.ProxyError) as error:
                why = str(error) or f"no connection within {self._connect_timeout_s:g} s"
                raise ServerUnreachable(self.shown, why) from error
            except httpx.TransportError as error:
                raise self._broken(error) from error
        raise AssertionError("the last attempt returns or raises")

    def _broken(self, error: Exception) -> EpisodeLost:
        why = str(error) or type(error).__name__
        return EpisodeLost(f"the connection to {self.shown} broke before the answer came ({why})")

    async def _body(self, response: httpx.Response) -> bytes:
        body = bytearray()
        async for piece in response.aiter_bytes():
            body += piece
            self._check_size(len(body))
        return bytes(body)

    async def _streamed(self, response: httpx.Response, identity: Any) -> Answer:
        """The answer out of a stream that may bring other messages first (progress, log messages)."""
        events, size = EventReader(), 0
        async for piece in response.aiter_bytes():
            size += len(piece)
            self._check_size(size)
            for data in events.feed(piece):
                answer = _answer(response, data)
                if answer.message is not None and answer.message.get("id") in (identity, None):
                    return answer
        raise EpisodeLost(f"the answer of {self.shown} ended before it was complete")

    def _check_size(self, size: int) -> None:
        if size > self._limit:
            raise BadReply("the answer", f"larger than {self._limit} bytes")


def _answer(response: httpx.Response, body: bytes) -> Answer:
    excerpt = body[:_EXCERPT].decode("utf-8", "replace").strip()
    return Answer(response.status_code, _response_in(body), excerpt, response.headers)


def _response_in(body: bytes) -> JsonObject | None:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None  # the excerpt shows what came instead
    is_response = isinstance(value, dict) and value.get("jsonrpc") == "2.0" and ("result" in value or "error" in value)
    return value if is_response else None
