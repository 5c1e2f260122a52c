"""The server of a client: at a URL that the user gave, or started by a provider that belongs to the client, or both."""

from __future__ import annotations

from typing import Any

from openenv_client.errors import EpisodeLost
from openenv_client.owned import OwnedProvider, Phase
from openenv_client.progress import Report
from openenv_client.urls import websocket_url

_CLEANUP_PENDING = (
    "Provider cleanup is pending for this client with an existing base URL. Retry close() to finish cleanup, then create a new "
    "client instead of reconnecting to the old URL."
)


class Server:
    """`base_url` is None while there is no server. With a given URL and a provider, the provider runs already."""

    def __init__(self, base_url: str | None, provider: Any, progress: Report | None) -> None:
        """Raises ValueError for neither, and for what is no server's URL."""
        if base_url is None and provider is None:
            raise ValueError("EnvClient requires either base_url or provider.")
        self.base_url = None if base_url is None else _checked(base_url)
        self._is_given = base_url is not None
        self._owned = None if provider is None else OwnedProvider(provider, running=self._is_given, progress=progress)
        self._stops = 0

    async def ensure(self) -> str:
        """The URL; the provider is started if there is none.

        Raises what the provider does, or RuntimeError while the provider of a given URL has failed to stop.
        """
        if self.base_url is None:
            self.base_url = await self._start()
        elif self._owned is not None and self._owned.phase is Phase.UNCLEAN:
            raise RuntimeError(_CLEANUP_PENDING)
        return self.base_url

    async def stop(self) -> None:
        """Stop the provider, if there is one that runs. Raises what it raises; a later call tries again."""
        self._stops += 1
        try:
            if self._owned is not None:
                await self._owned.stop()
        finally:
            self._forget()

    async def stop_after_failure(self) -> None:
        """The same, but a failure is only logged and remembered: another one is about to be raised."""
        if self._owned is not None:
            await self._owned.stop_after_failure()
        self._forget()

    async def _start(self) -> str:
        assert self._owned is not None, "a server has a URL or a provider"
        stops = self._stops
        url = _checked(await self._owned.start())
        if self._stops != stops:
            await self._owned.stop()
            raise EpisodeLost("the client was closed while its server started")
        return url

    def _forget(self) -> None:
        if not self._is_given:
            self.base_url = None


def _checked(base_url: str) -> str:
    websocket_url(base_url)  # raises ValueError for what is no server's URL
    return base_url.rstrip("/")
