"""One running request: who may cancel it, and whether its client still listens."""

from __future__ import annotations

import asyncio
from typing import Any


class InFlight:
    """Belongs to the task that made it, which carries the request out."""

    def __init__(self) -> None:
        task: asyncio.Task[Any] | None = asyncio.current_task()
        assert task is not None, "requests are carried out by tasks"
        self._task = task
        self._cancelled = False
        self._gone = False

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
