"""Checks on every HTTP request before anything else looks at it: Host, Origin, size, content type.

Host and Origin are checked against DNS rebinding: a web page that was loaded from another name must not reach a gateway on
this machine through the browser. A Host that is an IP address cannot be the fruit of rebinding.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

from starlette.types import Message, Receive

READ_AWAY = 8
"""How many times the limit of a body that is too large is read and dropped: a client that is still sending when the
connection closes sees a reset instead of the answer that tells it why."""
LOOPBACK_NAMES = frozenset({"localhost"})
LONGEST = 300
"""Characters of a Host or Origin that are looked at: names have 253 at most (RFC 1035)."""
REMEMBERED = 256
"""How many names are parsed once only: every request carries one, and nearly always the same."""


class Refused(Exception):
    """A request that is answered with an HTTP error before any JSON-RPC: status, and a text that says what to do."""

    def __init__(self, status: int, message: str, headers: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(message)
        self.status, self.message, self.headers = status, message, headers


@dataclass(frozen=True, slots=True)
class HostGuard:
    """Which Host and Origin values are let through, beyond loopback (and, for Host, IP addresses)."""

    hosts: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()

    @classmethod
    def of(cls, hosts: Iterable[str], origins: Iterable[str]) -> HostGuard:
        return cls(
            frozenset(host.lower() for host in hosts),
            frozenset(origin.lower().rstrip("/") for origin in origins),
        )

    def check(self, hosts: list[str], origins: list[str]) -> None:
        """Raises Refused 421 for a foreign Host, 403 for a foreign Origin, 400 for a doubled one."""
        if len(hosts) != 1 or len(origins) > 1:
            raise Refused(400, "A request carries exactly one Host header and at most one Origin header")
        if not self._host_allowed(hosts[0].strip().lower()):
            raise Refused(
                421,
                f"Host {hosts[0][:100]!r} is not served here: use localhost or an IP address, or add it to allowed_hosts.",
            )
        if origins and not self._origin_allowed(origins[0].strip().lower()):
            raise Refused(403, f"Origin {origins[0][:100]!r} may not call this gateway; allowed_origins lists who may.")

    def _host_allowed(self, host: str) -> bool:
        name = _name_of(f"//{host}") if len(host) <= LONGEST else None
        return name is not None and (name in LOOPBACK_NAMES or name in self.hosts or host in self.hosts or _address(name))

    def _origin_allowed(self, origin: str) -> bool:
        if origin in self.origins:
            return True
        name = _name_of(origin) if origin.startswith(("http://", "https://")) and len(origin) <= LONGEST else None
        return name is not None and (name in LOOPBACK_NAMES or _loopback_address(name))


@lru_cache(REMEMBERED)
def _name_of(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


@lru_cache(REMEMBERED)
def _address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _loopback_address(name: str) -> bool:
    return _address(name) and ipaddress.ip_address(name).is_loopback


def is_loopback(host: str) -> bool:
    """Whether a listening address is reachable from this machine only."""
    return host in LOOPBACK_NAMES or _loopback_address(host)


def check_content_type(value: str | None) -> None:
    """Raises Refused 415 for a body that is not declared as JSON."""
    if value == "application/json":
        return
    kind = (value or "").split(";", 1)[0].strip().lower()
    if kind != "application/json":
        raise Refused(415, f"Content-Type must be application/json, not {kind[:60] or 'absent'!r}")


async def read_body(receive: Receive, declared: str | None, limit: int) -> bytes:
    """The whole body. Raises Refused 413 above `limit` bytes; no more than that is ever kept."""
    too_large = declared is not None and declared.isdecimal() and int(declared) > limit
    message = await receive()
    if not (too_large or message.get("more_body", False)) and len(body := message.get("body", b"")) <= limit and (
        message["type"] == "http.request"
    ):
        return bytes(body)  # most bodies come in one piece
    return await _read_pieces(message, receive, limit, too_large=too_large)


async def _read_pieces(message: Message, receive: Receive, limit: int, *, too_large: bool) -> bytes:
    chunks: list[bytes] = []
    size = 0
    while True:
        if message["type"] == "http.disconnect":
            raise Refused(400, "The client left before its body had arrived")
        chunk = message.get("body", b"")
        size += len(chunk)
        too_large = too_large or size > limit
        if too_large:
            chunks.clear()
        else:
            chunks.append(chunk)
        if not message.get("more_body", False) or size > limit * READ_AWAY:
            break
        message = await receive()
    if too_large:
        raise Refused(413, f"The body is larger than {limit} bytes (max_body_bytes)", (("connection", "close"),))
    return b"".join(chunks)
