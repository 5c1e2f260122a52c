"""What one environment session can do, whichever wire it runs over (`connection` for `/ws`, `http` for 0.1.x servers)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from openenv_client.frames import Kind


class EnvironmentSession(Protocol):
    """One environment session: one request at a time, its reply never mixed up with another's.

    Replies are handed out raw, as the bytes of a reply frame `{"type": ..., "data": ...}`, so that whoever only passes an
    observation on need not decode and encode it; `frames.parse_reply` reads them. An error frame is a reply like any other.
    Not for use from several event loops or threads.
    """

    @property
    def owes(self) -> Kind | None:
        """The kind of the request whose reply nobody has taken yet, None if there is none. While an exchange waits it is
        the exchange's own kind."""
        ...

    @property
    def is_open(self) -> bool:
        """Whether another request can be sent on this session, now or after the owed reply was collected."""
        ...

    async def exchange(self, kind: Kind, data: Mapping[str, Any] | None, timeout_s: float) -> bytes:
        """Send one request and return its reply. `data` are reset's arguments or step's action (JSON values).

        Raises:
            ReplyOwed: an earlier request is still unanswered; nothing was sent.
            ReplyTimeout: sent, no reply within `timeout_s` seconds; the session now owes the reply.
            EpisodeLost: the connection is gone. If that happened after sending, the request's outcome is unknown.
            SessionRefused: (CapacityReached, FactoryFailed) the server gave no session; only on the first exchange.
            BadReply: the server does not speak OpenEnv's protocol.
            TypeError, ValueError: `data` is not JSON; nothing was sent.

        Cancellation after sending leaves the session owing the reply, exactly as a timeout does.
        """
        ...

    async def collect(self, timeout_s: float) -> bytes:
        """Wait for the owed reply and return it; the session is then free for the next exchange.

        Raises ReplyTimeout (it stays owed), EpisodeLost and the others as `exchange` does, RuntimeError when nothing is owed
        or the call that sent the request still waits itself.
        """
        ...

    async def close(self) -> None:
        """End the session. Never raises for what the far end does, takes about a second at most, may be called again and
        at any moment; an exchange that waits gets EpisodeLost. Cancelled, it cuts the connection at once."""
        ...

    async def wait_closed(self) -> None:
        """Return when the far end is gone or `close` was called."""
        ...
