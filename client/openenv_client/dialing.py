"""Opening one WebSocket to an environment server: the handshake, its errors, and the options that keep an episode alive.

No WebSocket pings unless asked for: an environment step that holds the interpreter lock answers none, and the usual 20 s
timeout then kills it, and other sessions of the same server with it. TCP keepalive finds a dead host or path in about 11 s
and raises no false alarm.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping

from websockets.asyncio.client import connect
from websockets.exceptions import InvalidHandshake, InvalidMessage, InvalidProxy, InvalidStatus, InvalidURI, ProxyError

from openenv_client import __version__
from openenv_client.direct import DirectConnection
from openenv_client.errors import NotAnEnvironment, OpenEnvError, ServerUnreachable, WebSocketRefused
from openenv_client.urls import is_loopback, shown, websocket_url

USER_AGENT = f"openenv-client/{__version__}"
CLOSE_TIMEOUT_S = 1.0
"""How long a closing handshake may take. A server in mid-step answers none, so waiting longer gains nothing."""

_NO_BACKPRESSURE = 2**30
"""Bytes. More than any request has, and few enough for event loops that keep the limit in a C int."""


async def dial(
    base_url: str,
    *,
    connect_timeout_s: float,
    max_message_bytes: int,
    headers: Mapping[str, str] | None,
    ping_interval_s: float | None,
    ping_timeout_s: float | None,
) -> DirectConnection:
    """One WebSocket to the server's `/ws`.

    Raises ServerUnreachable, WebSocketRefused (an HTTP status instead of a handshake), NotAnEnvironment (no HTTP at all),
    ValueError (no server URL).
    """
    url = websocket_url(base_url)
    try:
        websocket = await connect(
            url,
            create_connection=DirectConnection,
            additional_headers=headers,
            user_agent_header=USER_AGENT,
            proxy=None if is_loopback(url) else True,
            compression=None,
            open_timeout=connect_timeout_s,
            close_timeout=CLOSE_TIMEOUT_S,
            ping_interval=ping_interval_s,
            ping_timeout=ping_timeout_s,
            max_size=max_message_bytes,
            # One request is in flight at most, so buffering it whole is bounded, and send() never waits: a request is
            # either not sent or handed over completely.
            write_limit=_NO_BACKPRESSURE,
        )
    except (OSError, InvalidHandshake, InvalidProxy, InvalidURI, asyncio.TimeoutError) as error:  # noqa: UP041  (two on 3.10)
        raise _translated(error, shown(url), connect_timeout_s) from error
    keep_alive(websocket.transport.get_extra_info("socket"))
    assert isinstance(websocket, DirectConnection), "connect makes what create_connection says"
    return websocket


def keep_alive(sock: socket.socket, idle_s: int = 5, interval_s: int = 2, probes: int = 3) -> None:
    """Turn TCP keepalive on: first probe after `idle_s` of silence, then every `interval_s`, given up after `probes`. Where a
    platform has no such option its own default holds."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in {"TCP_KEEPIDLE": idle_s, "TCP_KEEPINTVL": interval_s, "TCP_KEEPCNT": probes}.items():
        option = getattr(socket, name, None)
        if option is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)


def _translated(error: Exception, url: str, timeout_s: float) -> OpenEnvError:
    if isinstance(error, InvalidStatus):
        return WebSocketRefused(url, error.response.status_code)
    if isinstance(error, (TimeoutError, asyncio.TimeoutError)):
        return ServerUnreachable(url, f"no WebSocket handshake within {timeout_s:g} s")
    if isinstance(error, (ProxyError, InvalidProxy)):
        return ServerUnreachable(url, f"the proxy did not connect ({error})")
    if isinstance(error, OSError):
        return ServerUnreachable(url, str(error) or type(error).__name__)
    # A port forwarder without a server behind it accepts and hangs up: that is a server that is not there (yet).
    if isinstance(error, InvalidMessage) and isinstance(error.__cause__, EOFError):
        return ServerUnreachable(url, "the connection was closed during the WebSocket handshake")
    return NotAnEnvironment(url, f"what answers there is no WebSocket server ({error})")
