"""The verbs by which servers are started and stopped. They are OpenEnv's own, synchronous and duck-typed.

A provider is one of two shapes. Nothing has to be inherited: whatever has the methods fits, OpenEnv's classes included.
`Watchable` is what the providers of this package offer on top; ask with `isinstance(provider, Watchable)`.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class ContainerProvider(Protocol):
    """Starts servers from images. `stop_container` may be called twice, and before anything was started."""

    def start_container(self, *args: Any, **kwargs: Any) -> str:
        """Called as `start_container(image=None, port=None, env_vars=None, **options)`; returns the base URL.

        Left open here, because providers differ in what they require: one that owns its image needs no arguments.
        """
        ...

    def stop_container(self) -> None: ...

    def wait_for_ready(self, base_url: str, timeout_s: float = 30.0) -> None:
        """Returns once the server answers; raises `TimeoutError` or `RuntimeError` otherwise."""
        ...


@runtime_checkable
class ServerProvider(Protocol):
    """Starts servers from something that the provider was built with: a command, a folder, a URL."""

    def start(self, port: int | None = None, env_vars: dict[str, str] | None = None, **kwargs: Any) -> str:
        """Launches the server and returns its base URL, without waiting until it is ready."""
        ...

    def stop(self) -> None: ...

    def wait_for_ready(self, timeout_s: float = 30.0) -> None:
        """Returns once the server answers; raises `TimeoutError` or `RuntimeError` otherwise."""
        ...


@runtime_checkable
class Watchable(Protocol):
    """A provider that can tell how its server fares, without waiting and without asking the server."""

    def poll(self) -> int | None:
        """None while the server runs; else its exit status (-N: ended by signal N; 0 also if none was ever started)."""
        ...

    def logs(self, tail: int = 50) -> str:
        """The last `tail` lines that the server printed, newest last; still there after it ended. Empty: it printed none."""
        ...
