"""Plain HTTP towards an environment server: one client, one bounded fetch, errors of our own tree."""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import httpx

from openenv_client.dialing import USER_AGENT
from openenv_client.errors import NotAnEnvironment, ServerUnreachable
from openenv_client.urls import http_url, is_loopback, shown

_SHOWN_BODY = 300


@dataclass(frozen=True, slots=True)
class Page:
    """One HTTP answer, whole. `url` is as messages may show it."""

    url: str
    status: int
    body: bytes

    @property
    def excerpt(self) -> str:
        """The start of the body, for messages."""
        text = self.body[:_SHOWN_BODY].decode("utf-8", errors="replace").strip()
        return text + ("..." if len(self.body) > _SHOWN_BODY else "")

    def json_object(self) -> dict[str, Any]:
        """The body as a JSON object. Raises ValueError that says what it is instead."""
        try:
            value = json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"no JSON ({error}): {self.excerpt!r}") from error
        if not isinstance(value, dict):
            raise ValueError(f"{type(value).__name__}, not an object")
        return value


@lru_cache
def _tls(trust_env: bool) -> ssl.SSLContext:
    """Read once: the certificates of all authorities take a client longer to read than a request takes, and a megabyte."""
    return httpx.create_ssl_context(trust_env=trust_env)


class HttpClient:
    """An httpx client for one server. Loopback servers are reached without the environment's proxies.

    Only connecting is bounded: an answer may take for ever, the caller says how long it waits. Connections are not kept: a
    request on one that the server is just closing fails without anybody knowing whether it was carried out.
    """

    def __init__(
        self,
        base_url: str,
        *,
        connect_timeout_s: float,
        max_body_bytes: int,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.url = http_url(base_url)
        self.max_body_bytes = max_body_bytes
        self._connect_timeout_s = connect_timeout_s
        trust_env = not is_loopback(base_url)
        self._client = httpx.AsyncClient(
            headers={"User-Agent": USER_AGENT, **(headers or {})},
            trust_env=trust_env,
            verify=_tls(trust_env),
            timeout=httpx.Timeout(None, connect=connect_timeout_s),
            limits=httpx.Limits(max_keepalive_connections=0),
        )

    async def fetch(self, method: Literal["GET", "POST"], path: str, body: Mapping[str, Any] | None = None) -> Page:
        """One request and its whole answer, whatever its status.

        Raises ServerUnreachable (no connection, or it broke before the answer was whole), NotAnEnvironment (no HTTP, or a body
        of more than `max_body_bytes`).
        """
        url = shown(self.url + path)
        try:
            # A POST is never sent twice, so only a GET follows redirects.
            async with self._client.stream(method, self.url + path, json=body, follow_redirects=method == "GET") as response:
                return Page(url, response.status_code, await self._body(url, response))
        except httpx.ConnectError as error:
            raise ServerUnreachable(url, str(error) or "the connection was refused") from error
        except httpx.ConnectTimeout as error:
            raise ServerUnreachable(url, f"no connection within {self._connect_timeout_s:g} s") from error
        except httpx.TransportError as error:
            raise ServerUnreachable(url, f"the connection broke ({error or type(error).__name__})") from error
        except (httpx.DecodingError, httpx.TooManyRedirects, httpx.InvalidURL) as error:
            raise NotAnEnvironment(url, f"its answer cannot be read ({error})") from error

    async def _body(self, url: str, response: httpx.Response) -> bytes:
        body = bytearray()
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > self.max_body_bytes:
                raise NotAnEnvironment(url, f"its answer is larger than {self.max_body_bytes} bytes")
        return bytes(body)

    async def aclose(self) -> None:
        """Drop every connection."""
        await self._client.aclose()
