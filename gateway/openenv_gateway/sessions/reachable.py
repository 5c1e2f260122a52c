"""Whether a server that runs elsewhere is there: asked when somebody wants to know, and for a moment remembered."""

from __future__ import annotations

import asyncio
import time

from openenv_client.discovery import health
from openenv_client.errors import OpenEnvError

REMEMBERED_S = 2.0
"""How long an answer counts: whoever asks more often, authorised or not, must not become a load for the server."""
TIMEOUT_S = 2.0


class Reachable:
    """The health of the server at `url`, as it was at most REMEMBERED_S ago."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._asking = asyncio.Lock()
        self._asked_at: float | None = None
        self._is_healthy = False

    async def __call__(self) -> bool:
        """Takes TIMEOUT_S at most. Those who ask at the same time share one question."""
        async with self._asking:
            if self._asked_at is None or time.monotonic() - self._asked_at >= REMEMBERED_S:
                self._is_healthy = await self._ask()
                self._asked_at = time.monotonic()
            return self._is_healthy

    async def _ask(self) -> bool:
        try:
            await health(self._url, TIMEOUT_S)
        except OpenEnvError:
            return False
        return True
