"""One running request: who may cancel it, whether its client still listens, and what it is told meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from itertools import chain, repeat
from typing import Any

from openenv_client.frames import JsonObject
from openenv_gateway.mapping.verbatim import VERBATIM
from openenv_gateway.mcp.jsonrpc import notification_message

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""Log levels of MCP (those of RFC 5424), the least urgent first."""
LOG_LEVEL_KEY = "io.modelcontextprotocol/logLevel"


FIRST_TICKS_S = (0.25, 0.3, 0.3, 0.4, 1.0, 2.0)
LATER_TICK_S = 5.0


def ticks() -> Iterator[float]:
    """The pauses before the signs of life of a call that lasts: soon at first, then every LATER_TICK_S (hosts cut calls of
    which they hear nothing for a minute)."""
    return chain(FIRST_TICKS_S, repeat(LATER_TICK_S))


def _nothing() -> None:
    """What is done about an answer that nobody else was to be told."""


def _starting() -> str:
    return "starting"


class InFlight:
    """Belongs to the task that made it, which carries the request out.

    `loop`: the running event loop, where it is known, which spares the search.

    `progress_token`: the client's, None if it wants no progress; `log_level`: the least urgent level that it wants to see, None
    for none. `is_logged`: whether it wants any, so that texts that nobody reads need not be written. `doing` says in a few
    words what the request waits for. `outbox` holds notifications that are not sent yet. `heard` is to be called when a
    client that had left got the answer all the same.
    """

    def __init__(
        self, params: JsonObject | None = None, log_level: str | None = None, loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        task: asyncio.Task[Any] | None = asyncio.current_task(loop)
        assert task is not None, "requests are carried out by tasks"
        self._task = task
        self._cancelled = False
        self._gone = False
        self._ticks = 0
        meta = params.get("_meta") if params else None
        self._given: JsonObject = meta if isinstance(meta, dict) else {}
        self.log_level = self._given.get(LOG_LEVEL_KEY, log_level)
        self.is_logged = self.log_level is not None and self.log_level in LEVELS
        self.doing: Callable[[], str] = _starting
        self.outbox: list[bytes] = []
        self.heard: Callable[[], None] = _nothing

    @property
    def progress_token(self) -> str | int | None:
        token = self._given.get("progressToken")
        return token if isinstance(token, str | int) and not isinstance(token, bool) else None

    @property
    def wants_verbatim(self) -> bool:
        """Whether the client is a program that wants the environment's reply as it came (see `mapping.verbatim`)."""
        return self._given.get(VERBATIM) is True

    def cancel(self) -> bool:
        """The client gave the call up. Returns False when it has ended already."""
        self._cancelled = self._task.cancel()
        return self._cancelled

    def leave(self) -> None:
        """The client is gone, which is no cancellation (handshake era): the call goes on, its outcome is kept."""
        self._gone = True

    def gone(self) -> bool:
        """Whether an answer would not reach anybody."""
        return self._gone

    def absorb(self) -> bool:
        """Called where CancelledError was caught: whether it came from `cancel`. Then the task goes on as if it had not been
        cancelled (to answer, and to serve the connection's next request)."""
        if not self._cancelled:
            return False
        self._task.uncancel()
        return True

    def progress(self) -> None:
        """Put a progress notification into the outbox, if the client wants any. Its number only says that time goes on: how
        long a step or a launch will take is not known."""
        if self.progress_token is not None:
            self._ticks += 1
            params = {"progressToken": self.progress_token, "progress": self._ticks, "message": self.doing()}
            self.outbox.append(notification_message("notifications/progress", params))

    def log(self, level: str, text: str) -> None:
        """Put a log message into the outbox, if the client wants to see its level."""
        if self.is_logged and LEVELS.index(level) >= LEVELS.index(self.log_level):
            params = {"level": level, "logger": "openenv-gateway", "data": text}
            self.outbox.append(notification_message("notifications/message", params))
