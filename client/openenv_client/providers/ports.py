"""A loopback port that stays ours between choosing it and the server's own `bind`.

The usual way (bind port 0, read the number, close) leaves seconds in which the kernel may give the port to somebody else.
On Linux a bound socket that never listens closes that gap: the kernel hands its port to nobody, and a server that sets
SO_REUSEADDR (uvicorn, asyncio, Go, Node and `http.server` do) can bind it all the same. A server that does not set it must
be launched again after `release()`. Elsewhere the port is free when it is chosen, and no more is promised.
"""

from __future__ import annotations

import errno
import socket
import sys
from types import TracebackType

from ..errors import ProviderError


class PortReservation:
    """Holds `port` on `host` until `release()`, which may be called twice."""

    def __init__(self, host: str, port: int = 0) -> None:
        """Takes `port`, or any free one for 0. Raises `ProviderError` if the port is taken or `host` is not of this machine."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket: socket.socket | None = socket.socket(family, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((host, port))
        except OSError as exc:
            self._socket.close()
            raise ProviderError(_why_not(host, port, exc)) from exc
        self.port: int = self._socket.getsockname()[1]
        if sys.platform != "linux":
            self.release()

    @property
    def held(self) -> bool:
        """Whether the port is still kept from others (and from servers without SO_REUSEADDR)."""
        return self._socket is not None

    def release(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def __enter__(self) -> PortReservation:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None) -> None:
        self.release()


def _why_not(host: str, port: int, exc: OSError) -> str:
    if exc.errno == errno.EADDRINUSE:
        return f"Port {port} on {host} is in use by another process; choose another port, or none to get a free one"
    return f"Cannot use port {port} on {host}: {exc.strerror}"
