"""A server that somebody else runs."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from ..errors import LaunchFailed, LaunchTimeout, ProviderError
from .ready import wait_until_healthy


class RemoteProvider:
    """A `ServerProvider` and `Watchable` that launches and ends nothing: it only checks health."""

    def __init__(self, url: str, *, headers: Mapping[str, str] | None = None, context_timeout_s: float = 30.0) -> None:
        """`url`: the root of an OpenEnv server, http or https (else `ValueError`). `headers` go with the health check."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is no http:// or https:// URL of an environment server")
        self._url, self._headers = url.rstrip("/"), dict(headers or {})
        self.context_timeout_s = context_timeout_s
        self._stopped: threading.Event | None = None

    def start(self, port: int | None = None, env_vars: Mapping[str, str] | None = None, **options: Any) -> str:
        """The URL. Raises `ProviderError` for a port or variables: they cannot be given to a server that runs already."""
        if port is not None or env_vars:
            raise ProviderError(f"{self._url} runs elsewhere: its port and environment variables cannot be set from here")
        if self._stopped is not None and not self._stopped.is_set():
            raise ProviderError("RemoteProvider is already running")
        self._stopped = threading.Event()
        return self._url

    def wait_for_ready(self, timeout_s: float | None = None) -> None:
        """Returns once `/health` answers 200, for at most `timeout_s` (default `context_timeout_s`) seconds.

        Raises `LaunchTimeout` (a `TimeoutError`) after that, `LaunchFailed` (a `RuntimeError`) if `stop` is called meanwhile.
        """
        stopped = self._stopped
        if stopped is None or stopped.is_set():
            raise ProviderError("RemoteProvider has not been started")

        def pause(seconds: float) -> None:
            if stopped.wait(seconds):
                raise LaunchFailed(self._url, "it was stopped while it was waited for")

        seconds = self.context_timeout_s if timeout_s is None else timeout_s
        try:
            wait_until_healthy(self._url, seconds, pause, self._headers)
        except TimeoutError as exc:
            self.stop()
            raise LaunchTimeout(self._url, str(exc)) from exc

    def stop(self) -> None:
        """Ends a wait that is going on; the server itself is not ours to end."""
        if self._stopped is not None:
            self._stopped.set()

    def poll(self) -> int | None:
        """None between `start` and `stop`, else 0. Whether the server is well is for a health check to say."""
        return None if self._stopped is not None and not self._stopped.is_set() else 0

    def logs(self, tail: int = 50) -> str:
        """Always empty: the log is where the server runs."""
        return ""

    @property
    def base_url(self) -> str:
        """Raises `ProviderError` (a `RuntimeError`) unless it was started and not stopped."""
        if self.poll() is not None:
            raise ProviderError("RemoteProvider has not been started")
        return self._url

    def __enter__(self) -> RemoteProvider:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()
