"""One start-to-stop of a launched server: its port, its processes, and what must be tidied up afterwards."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from ..errors import LaunchFailed, ProviderError
from .hiding import NOTHING, Hidden
from .ports import PortReservation
from .process import ChildProcess

logger = logging.getLogger(__name__)
_ADDRESS_IN_USE = ("address already in use", "eaddrinuse", "errno 98", "errno 48")
LINES_IN_ERRORS, _CHARACTERS_IN_ERRORS = 20, 4000


@dataclass(frozen=True)
class Plan:
    """What to execute, where, and with which environment variables (all of them, not only the additional ones)."""

    command: Sequence[str]
    env: Mapping[str, str]
    cwd: Path | None = None


class Phase(Enum):
    """STARTING → LAUNCHED → ENDED, or straight to ENDED, which is final. A server that ended by itself is still LAUNCHED."""

    STARTING = "its server is not launched yet; helpers may run"
    LAUNCHED = "its server was launched"
    ENDED = "it was stopped; nothing runs"


class Run:
    """Ended by `end()`, from any thread; whatever is launched or registered after that is refused or undone at once."""

    def __init__(
        self, what: str, noun: str, host: str, port: int, stop_grace_s: float, hidden: Hidden = NOTHING
    ) -> None:
        """`what` names the server in errors, `noun` its process; what is `hidden` is not in its logs. Raises `ProviderError`
        if the port is taken."""
        self.what, self._noun = what, noun
        self._stop_grace_s, self._hidden = stop_grace_s, hidden
        self._reservation = PortReservation(host, port)
        self.port = self._reservation.port
        self._lock = threading.Lock()
        self.phase = Phase.STARTING
        self._tidy = ExitStack()
        self._child: ChildProcess | None = None
        self._plan: Plan | None = None

    def launch(self, plan: Plan) -> None:
        """Launches the server. Raises `LaunchFailed` if the command cannot be run, or if the run has ended meanwhile."""
        with self._lock:
            self._spawn(plan)
            self._check_not_ended()
            self._plan, self.phase = plan, Phase.LAUNCHED

    def run_to_end(self, plan: Plan, timeout_s: float) -> tuple[int | None, str]:
        """A helper that prepares the server: its exit status (None: not done in time, so it was ended) and its output."""
        with self._lock:
            child = self._spawn(plan)
        status = child.wait(timeout_s)
        child.stop()
        self._check_not_ended()
        return status, child.logs()

    def on_end(self, tidy: Callable[[], object]) -> None:
        with self._lock:
            if self.phase is not Phase.ENDED:
                self._tidy.callback(tidy)
                return
        tidy()

    def pause(self, seconds: float) -> None:
        """Waits up to `seconds`. Raises `LaunchFailed` at once when the server has ended or the run was stopped.

        A server that says that the address is in use, while only our reservation uses it, is launched again without one.
        """
        child, plan = self._child, self._plan
        if child is None or plan is None:
            raise self._failure("it has not been launched")
        status = child.wait(seconds)
        self._check_not_ended()
        if status is None:
            return
        if not (self._reservation.held and says_address_in_use(child.logs())):
            raise self._failure(f"{self._noun} exited prematurely with code {status}")
        self._reservation.release()
        child.stop()
        self.launch(plan)

    def ready(self) -> None:
        """The server listens, so the port needs no reservation any more."""
        self._reservation.release()

    def poll(self) -> int | None:
        """None while it starts and while the server runs; else the exit status, 0 if nothing was ever launched."""
        if self.phase is Phase.STARTING:
            return None
        return self._child.poll() if self._child else 0

    def logs(self, tail: int) -> str:
        return self._child.logs(tail) if self._child else ""

    def last_lines(self) -> str:
        """What an error quotes of the log."""
        return quoted(self.logs(LINES_IN_ERRORS))

    def end(self) -> None:
        """Stops what runs, then tidies up; may be called again, also after it raised. Raises as `ChildProcess.stop`."""
        self.phase = Phase.ENDED  # before the lock, so that a launch which holds it is the last one
        with self._lock:
            self.phase = Phase.ENDED  # a launch may have said otherwise meanwhile
            if self._child:
                self._child.stop()
            self._reservation.release()
            self._tidy.close()

    def _spawn(self, plan: Plan) -> ChildProcess:
        self._check_not_ended()
        self._child = ChildProcess(
            plan.command, env=plan.env, cwd=plan.cwd, stop_grace_s=self._stop_grace_s, hidden=self._hidden
        )
        return self._child

    def _check_not_ended(self) -> None:
        if self.phase is Phase.ENDED:
            raise self._failure("it was stopped while it was starting")

    def _failure(self, reason: str) -> LaunchFailed:
        return LaunchFailed(self.what, reason, self.last_lines())


def says_address_in_use(log: str) -> bool:
    """Whether a server's output reads like a failed bind (EADDRINUSE is 98 on Linux, 48 on macOS)."""
    return any(text in log.lower() for text in _ADDRESS_IN_USE)


def end_after_failure(end: Callable[[], object]) -> None:
    """`end`, of a start that has failed: that failure is what its caller must hear, so that one of the end is only logged. The
    caller's `stop` tries again."""
    try:
        end()
    except ProviderError as exc:
        logger.warning("after a failed start: %s", str(exc))  # a record may be kept, and must not keep the frames behind it


def quoted(log: str) -> str:
    """The end of a log, as much of it as an error shows."""
    return log[-_CHARACTERS_IN_ERRORS:]
