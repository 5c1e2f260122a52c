"""Answers for which a client may come back: of calls whose stream broke, or was closed so that the client polls (2025-11-25).

A call that lasts begins its stream with an event that has an id and no data. Whoever sends that id in the header Last-Event-ID
of a GET gets the answer there, whether the call goes on or has ended meanwhile.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from openenv_gateway.mcp.inflight import InFlight

RETRY_MS = 1000
"""How long a client shall wait before it comes back."""
MOST = 16
"""Answers that are kept for one session; the oldest goes."""


class Posted:
    """One call's answer, once there is one."""

    def __init__(self, event_id: str, request: InFlight) -> None:
        self.event_id, self._request = event_id, request
        self._answer: bytes | None = None
        self._ready = asyncio.Event()

    @property
    def priming(self) -> bytes:
        """The event with which its stream begins."""
        return f"id: {self.event_id}\nretry: {RETRY_MS}\ndata: \n\n".encode()

    def finish(self, message: bytes) -> None:
        """The call has ended; `message` is its JSON-RPC response."""
        self._answer = message
        self._ready.set()

    async def answer(self) -> bytes:
        """The JSON-RPC response, when it is there."""
        await self._ready.wait()
        assert self._answer is not None, "it is ready when there is an answer"
        return self._answer

    def heard(self) -> None:
        """Its client came back and was given the answer: the next call need not tell it again."""
        self._request.heard()


class Mailbox:
    """The calls of one session for which its client may come back."""

    def __init__(self) -> None:
        self._posted: OrderedDict[str, Posted] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return len(self._posted)

    def open(self, request: InFlight) -> Posted:
        """A place for the answer to a call that lasts."""
        self._count += 1
        posted = self._posted[str(self._count)] = Posted(str(self._count), request)
        if len(self._posted) > MOST:
            self._posted.popitem(last=False)
        return posted

    def find(self, event_id: str | None) -> Posted | None:
        """What a client with this Last-Event-ID comes back for; None if that is nothing (any more)."""
        return self._posted.get(event_id or "")

    def close(self, posted: Posted) -> None:
        """The answer arrived: nobody will ask again."""
        self._posted.pop(posted.event_id, None)
