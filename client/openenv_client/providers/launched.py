"""What the providers that launch a process have in common: the verbs, over one `Run` at a time."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from ..errors import LaunchTimeout, ProviderError
from .hiding import Hidden
from .memory import parse_size
from .process import STOP_GRACE_S
from .ready import wait_until_healthy
from .run import Phase, Plan, Run

_EVERY_INTERFACE = {"0.0.0.0": "127.0.0.1", "::": "::1"}
_UNLESS_SET = {
    "PYTHONHASHSEED": "0",  # the order of sets repeats, so a recorded episode can be replayed
    "PYTHONUNBUFFERED": "1",  # what a server prints before it hangs is in its log
}


class LaunchedServer(ABC):
    """A `ServerProvider` and `Watchable`; subclasses say what to run. Usable as a context manager, and again after `stop`.

    The server never outlives this process, whichever way it ends. Its standard input is empty; its output is in `logs`, where
    the values of `env_vars` (of eight characters or more) are shown as `${NAME}`.
    """

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        env_vars: Mapping[str, str] | None = None,
        context_timeout_s: float = 60.0,
        stop_grace_s: float = STOP_GRACE_S,
        memory: str | None = None,
    ) -> None:
        """`host`: where the server listens. `context_timeout_s`: how long `wait_for_ready` waits unless told.

        `stop_grace_s`: seconds between SIGTERM and SIGKILL. `memory`: such as `2g`, the most address space of each process.
        Raises `ValueError` for what is no size.
        """
        if memory is not None:
            parse_size(memory)
        self.memory = memory
        self.host, self.env_vars = host, dict(env_vars or {})
        self.context_timeout_s, self.stop_grace_s = context_timeout_s, stop_grace_s
        self._lock = threading.Lock()
        self._run: Run | None = None

    def start(self, port: int | None = None, env_vars: Mapping[str, str] | None = None, **options: Any) -> str:
        """Launches the server, on a free port unless `port` is given, and returns its base URL. It may not be ready yet.

        `env_vars` are added to this process' variables and to those of the constructor. `options` that the provider does
        not know are ignored, as OpenEnv's providers do. Raises `ProviderError` (a `RuntimeError`) if the server runs
        already, the port is taken, or the command cannot be run; nothing is left running then.
        """
        run = self._new_run(port or 0, Hidden({**self.env_vars, **(env_vars or {})}))
        try:
            run.launch(self._plan(run, server_environment(os.environ, self.env_vars, env_vars or {}, run.port), options))
        except BaseException:
            run.end()
            raise
        return reachable_url(self.host, run.port)

    def wait_for_ready(self, timeout_s: float | None = None) -> None:
        """Returns once `/health` answers 200, for at most `timeout_s` (default `context_timeout_s`) seconds.

        Raises `LaunchTimeout` (a `TimeoutError`) when that takes too long and `LaunchFailed` (a `RuntimeError`) as soon as
        the server ends or `stop` is called meanwhile, both with its last lines. Whatever is raised, nothing is left running.
        """
        run = self._launched()
        seconds = self.context_timeout_s if timeout_s is None else timeout_s
        try:
            wait_until_healthy(reachable_url(self.host, run.port), seconds, run.pause)
        except TimeoutError as exc:
            run.end()
            raise LaunchTimeout(run.what, f"{exc}{self._hint(run)}", run.last_lines()) from exc
        except BaseException:
            run.end()
            raise
        run.ready()

    def stop(self) -> None:
        """Ends the server and everything that it started, and returns when nothing is left. May be called at any time."""
        with self._lock:
            run = self._run
        if run is not None:
            run.end()

    def poll(self) -> int | None:
        """None while the server runs; else its exit status (-N: ended by signal N), 0 if it was never started."""
        return self._run.poll() if self._run else 0

    def logs(self, tail: int = 50) -> str:
        """The last `tail` lines of the server's stdout and stderr; kept after it ended, until the next start."""
        return self._run.logs(tail) if self._run else ""

    @property
    def base_url(self) -> str:
        """Raises `ProviderError` (a `RuntimeError`) unless the server was started and not stopped."""
        return reachable_url(self.host, self._launched().port)

    def __enter__(self) -> LaunchedServer:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    @abstractmethod
    def _plan(self, run: Run, env: Mapping[str, str], options: Mapping[str, Any]) -> Plan:
        """What to launch on `run.port`. May prepare things with `run.run_to_end` and undo them with `run.on_end`."""

    @abstractmethod
    def _names(self) -> tuple[str, str]:
        """What errors call the server, and its process."""

    def _hint(self, run: Run) -> str:
        """What may be the matter with a server that runs but does not answer, for the error; nothing is known by default."""
        return ""

    def _new_run(self, port: int, hidden: Hidden) -> Run:
        with self._lock:
            if self._run is not None:
                if self._run.phase is not Phase.ENDED and self._run.poll() is None:
                    raise ProviderError(f"{type(self).__name__} is already running")
                self._run.end()
            what, noun = self._names()
            self._run = Run(what, noun, self.host, port, self.stop_grace_s, hidden)
            return self._run

    def _launched(self) -> Run:
        if self._run is None or self._run.phase is not Phase.LAUNCHED:
            raise ProviderError(f"{type(self).__name__} has not been started")
        return self._run


def server_environment(
    ours: Mapping[str, str], provider: Mapping[str, str], call: Mapping[str, str], port: int
) -> dict[str, str]:
    """The server's variables: the later overrides the earlier, except that PORT is always the port of the base URL."""
    return {**_UNLESS_SET, **ours, **provider, **call, "PORT": str(port)}


def is_every_interface(host: str) -> bool:
    """Whether `host` is no address of its own but stands for all of them."""
    return host in _EVERY_INTERFACE


def reachable_url(host: str, port: int) -> str:
    """The URL of a server that listens on `host`: a client cannot connect to "every interface"."""
    reachable = _EVERY_INTERFACE.get(host, host)
    return f"http://[{reachable}]:{port}" if ":" in reachable else f"http://{reachable}:{port}"
