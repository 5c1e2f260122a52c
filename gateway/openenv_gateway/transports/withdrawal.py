"""What lasts ends when its token is withdrawn: WebSockets, GET streams, `subscriptions/listen`.

A request is checked once, when it comes; these stay for hours. One timer asks for all of them, and only while there are any.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from openenv_gateway.transports.access import Access
from openenv_gateway.transports.tokens import Principal

log = logging.getLogger(__name__)

LOOK_EVERY_S = 0.5
"""With the look at the token file once a second, a withdrawal is noticed within about that time."""
WITHDRAWN = "The token of this connection was withdrawn: ask who runs the gateway for one."

End = Callable[[str], None]
"""Ends something, for a reason in words; called at most once, on the event loop."""


class Withdrawals:
    """Who must go when a token goes."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._lasting: dict[object, tuple[Principal, End]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._lasting)

    @contextmanager
    def watched(self, principal: Principal, end: End) -> Iterator[None]:
        """While the block runs, `end` is called if the principal's token is withdrawn, or no longer grants what it did."""
        if not self._access.asks_for_tokens:
            yield
            return
        key = object()
        self._lasting[key] = (principal, end)
        self._wait()
        try:
            yield
        finally:
            self._lasting.pop(key, None)

    def _wait(self) -> None:
        if self._timer is None and self._lasting:
            self._timer = asyncio.get_running_loop().call_later(LOOK_EVERY_S, self._look)

    def _look(self) -> None:
        self._timer = None
        for key, (principal, end) in tuple(self._lasting.items()):
            if not self._access.still_admits(principal):
                del self._lasting[key]
                log.info("a lasting connection of %s is ended: its token was withdrawn", principal.name)
                end(WITHDRAWN)
        self._wait()
