"""What the providers that start images on a Docker engine have in common: the verbs, over one start-to-stop at a time."""

from __future__ import annotations

import atexit
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

from ..errors import LaunchTimeout, ProviderError
from .docker_options import ContainerOptions, check_env_vars
from .hiding import Hidden
from .ready import wait_until_healthy
from .run import Phase, end_after_failure

STOP_GRACE_S = 5.0


class ImageRun(Protocol):
    """One start-to-stop on the engine."""

    phase: Phase
    what: str

    def pause(self, seconds: float) -> None: ...
    def poll(self) -> int | None: ...
    def logs(self, tail: int) -> str: ...
    def last_lines(self) -> str: ...
    def end(self) -> None: ...


RunT = TypeVar("RunT", bound=ImageRun)
SelfT = TypeVar("SelfT", bound="ImageServer[Any]")


class ImageServer(ABC, Generic[RunT]):
    """A `ContainerProvider` and `Watchable`, with the verbs and arguments of OpenEnv's own. Usable again after a stop.
    Subclasses say what a run is (`_make_run`) and how it begins (`_begin`)."""

    def __init__(
        self, image: str | None, env_vars: Mapping[str, str] | None, stop_grace_s: float, options: Mapping[str, Any]
    ) -> None:
        """Raises `ValueError` or `TypeError` for options that there are not."""
        self.image, self.env_vars, self.stop_grace_s = image, dict(env_vars or {}), stop_grace_s
        self.options = self._checked(ContainerOptions().with_changes(options))
        self._hint = ""
        self._lock = threading.Lock()
        self._run: RunT | None = None

    def start_container(
        self,
        image: str | None = None,
        port: int | None = None,
        env_vars: Mapping[str, str] | None = None,
        **options: Any,
    ) -> str:
        """Starts a server and returns its base URL. It may not be ready yet.

        `port` is the one that is published (default: any free one), not the server's own: that is the option `container_port`.
        `env_vars` are added to the constructor's; `options` replace the constructor's. `workers`, which OpenEnv's own clients
        may pass, is for the image to decide and ignored. Raises `ProviderError` (a `RuntimeError`; `LaunchFailed` with the
        last lines if there are any) when the image cannot be had, the engine refuses, the port is taken or a server of this
        provider runs already; `ValueError` or `TypeError` for arguments. Nothing is left then.
        """
        wanted = image or self.image
        if not wanted:
            raise ValueError("start_container needs an image: give it here or to the constructor")
        options.pop("workers", None)
        chosen = self._checked(self.options.with_changes(options))
        variables = {**self.env_vars, **(env_vars or {})}
        check_env_vars(variables)
        run = self._new_run(wanted, Hidden(variables))
        try:
            return self._begin(run, chosen, port, variables)
        except BaseException:
            end_after_failure(run.end)
            raise

    def wait_for_ready(self, base_url: str, timeout_s: float = 30.0) -> None:
        """Returns once `/health` answers 200, for at most `timeout_s` seconds.

        Raises `LaunchTimeout` (a `TimeoutError`) when that takes too long and `LaunchFailed` (a `RuntimeError`) as soon as
        the server ends or is stopped meanwhile, both with its last lines. Whatever is raised, nothing is left.
        """
        run = self._run
        if run is None or run.phase is not Phase.LAUNCHED:
            raise ProviderError(f"{type(self).__name__} has not been started")
        try:
            wait_until_healthy(base_url, timeout_s, run.pause)
        except TimeoutError as exc:
            lines = run.last_lines()
            end_after_failure(run.end)
            raise LaunchTimeout(run.what, f"{exc}{self._hint}", lines or run.last_lines()) from exc
        except BaseException:
            end_after_failure(run.end)
            raise

    def stop_container(self) -> None:
        """Ends the server and removes it, and returns when it is gone. May be called at any time, from any thread.

        Raises `ProviderError` when the engine does not let it go; then it may be called again.
        """
        with self._lock:
            run = self._run
        if run is not None:
            run.end()
            atexit.unregister(self.stop_container)

    def poll(self) -> int | None:
        """None while the server runs; else its exit status (-N: ended by signal N), 0 if it was never started."""
        return self._run.poll() if self._run else 0

    def logs(self, tail: int = 50) -> str:
        """The last `tail` lines that it printed; kept after it was removed, until the next start."""
        return self._run.logs(tail) if self._run else ""

    @abstractmethod
    def close(self) -> None:
        """Stops the server, and closes the connections to the engine."""

    def __enter__(self: SelfT) -> SelfT:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @abstractmethod
    def _make_run(self, image: str, hidden: Hidden) -> RunT:
        """A run of `image`, not begun."""

    @abstractmethod
    def _begin(self, run: RunT, options: ContainerOptions, port: int | None, variables: Mapping[str, str]) -> str:
        """Start it and return its base URL. From the moment that there is something to stop, `stop_container` is called when
        this process ends."""

    @staticmethod
    def _checked(options: ContainerOptions) -> ContainerOptions:
        """Raises `ValueError` for options that this kind of server cannot have."""
        return options

    def _new_run(self, image: str, hidden: Hidden) -> RunT:
        with self._lock:
            if self._run is not None:
                if self._run.phase is not Phase.ENDED and self._run.poll() is None:
                    raise ProviderError(f"{type(self).__name__} is already running")
                self._run.end()
            self._run = self._make_run(image, hidden)
            return self._run
