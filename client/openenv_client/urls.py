"""The addresses of one environment server: where its `/ws` is, where its pages are, whether a proxy may be asked. Pure."""

from __future__ import annotations

import ipaddress
from urllib.parse import SplitResult, urlsplit

_WEBSOCKET = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}
_HTTP = {"ws": "http", "wss": "https", "http": "http", "https": "https"}


def websocket_url(base_url: str) -> str:
    """The `/ws` address below a server's base URL: `http` becomes `ws`, `https` becomes `wss`, a bare host means `ws`.

    A query (`?session_id=...`) is kept. `/ws` is always added, also to a path that happens to end so: an environment may be
    called `ws`. Raises ValueError for anything that is not the base URL of a server.
    """
    parts = _split(base_url)
    path = parts.path.rstrip("/") + "/ws"
    return parts._replace(scheme=_WEBSOCKET[parts.scheme], path=path).geturl()


def http_url(base_url: str) -> str:
    """The base URL of a server's HTTP pages, without a trailing slash or query. Raises ValueError as `websocket_url` does."""
    parts = _split(base_url)
    return parts._replace(scheme=_HTTP[parts.scheme], path=parts.path.rstrip("/"), query="").geturl()


def is_loopback(url: str) -> bool:
    """Whether the host is exactly `localhost` or a loopback address. Such servers are never asked for through a proxy."""
    host = _split(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name: 127.0.0.1.example.com is somebody else's machine
        return False


def shown(url: str) -> str:
    """The URL as messages and logs may show it: without user, password and query, which can be secrets."""
    parts = _split(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()


def _split(url: str) -> SplitResult:
    """The parts of a URL whose scheme (`ws` if it names none), host and port are known to be good."""
    try:
        parts = urlsplit(url if "://" in url else f"ws://{url}")
        _ = parts.port  # raises ValueError when it is no port
    except ValueError as error:
        raise _invalid(url, str(error)) from error
    if parts.scheme not in _WEBSOCKET:
        raise _invalid(url, f"the scheme {parts.scheme!r} is not http, https, ws or wss")
    if not parts.hostname:
        raise _invalid(url, "it names no host")
    if parts.fragment or not url.isprintable() or " " in url:
        raise _invalid(url, "it has a fragment, a blank or a control character")
    return parts


def _invalid(url: str, reason: str) -> ValueError:
    return ValueError(f"Invalid server URL {url!r}: {reason}. Expected something like http://127.0.0.1:8000")
