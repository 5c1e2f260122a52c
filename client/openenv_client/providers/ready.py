"""Readiness: `GET /health` answers 200.

`urllib` and not `httpx`: importing httpx costs a third of a second, which a host that launches the gateway would wait for.
"""

from __future__ import annotations

import http.client
import ipaddress
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

_PAUSE_S = 0.05
_PAUSE_AFTER_ANSWER_S = 0.5  # each answered request is a line in the server's log, and should not push out why it is ill
_ONE_REQUEST_S = 2.0


def wait_until_healthy(
    base_url: str, timeout_s: float, pause: Callable[[float], None], headers: Mapping[str, str] | None = None
) -> None:
    """Returns once `base_url`/health answers 200.

    `pause(seconds)` is called between requests, and once more after the 200. It raises when there is nothing to wait for
    any longer (the server ended, the wait was cancelled) and so ends the wait; it should do so at once.
    Raises `TimeoutError` after `timeout_s` seconds, saying what `/health` last did.
    """
    deadline = time.monotonic() + timeout_s
    open_url = opener(base_url)
    while True:
        remaining = deadline - time.monotonic()
        answered, found = _ask(open_url, base_url, headers or {}, min(max(remaining, 0.01), _ONE_REQUEST_S))
        pause(0)
        if found == "HTTP 200":
            return
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise TimeoutError(f"Server did not become ready within {timeout_s:.1f} seconds (last answer of /health: {found})")
        pause(min(remaining, _PAUSE_AFTER_ANSWER_S if answered else _PAUSE_S))


def is_loopback(host: str) -> bool:
    """Whether `host` is exactly `localhost` or a loopback address. A proxy must never be asked for those."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def opener(base_url: str) -> urllib.request.OpenerDirector:
    """What opens URLs of this server: without the environment's proxies if it is on this machine."""
    if is_loopback(urlsplit(base_url).hostname or ""):
        return urllib.request.build_opener(urllib.request.ProxyHandler({}))
    return urllib.request.build_opener()


def _ask(
    director: urllib.request.OpenerDirector, base_url: str, headers: Mapping[str, str], timeout_s: float
) -> tuple[bool, str]:
    """Whether there was an answer, and which, or why not."""
    request = urllib.request.Request(f"{base_url}/health", headers=dict(headers))
    try:
        with director.open(request, timeout=timeout_s) as response:
            return True, f"HTTP {response.status}"
    except urllib.error.HTTPError as exc:
        with exc:
            return True, f"HTTP {exc.code}"
    except urllib.error.URLError as exc:
        return False, str(exc.reason)
    except (OSError, http.client.HTTPException) as exc:
        return False, str(exc) or type(exc).__name__
