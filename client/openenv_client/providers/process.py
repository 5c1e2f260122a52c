"""One child process with all that comes from it: launched under a guard, its output kept, its end noticed and complete."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO

from ..errors import LaunchFailed
from .hiding import NOTHING, Hidden
from .output import OutputRing

STOP_GRACE_S = 5.0
ORPHAN_GRACE_S = 2.0
_GUARD = Path(__file__).with_name("_guard.py")
_GUARD_ANSWERS_S = 30.0
_KILL_TAKES_S = 12.0
_PIPE_HOLDS, _CHUNK = 1024 * 1024, 64 * 1024
_NOT_RUN = "it could not be run: {}"


class ChildProcess:
    """Runs from construction until `stop()`, its own end, or the end of this process, whichever is first.

    Nothing is left then: what it forked is ended too (SIGTERM, the grace, SIGKILL), on Linux also what left its session.
    All methods may be called from any thread, and again.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path | None = None,
        stop_grace_s: float = STOP_GRACE_S,
        hidden: Hidden = NOTHING,
    ) -> None:
        """Returns when the command has been exec'ed. Raises `LaunchFailed` if it cannot be. `logs` are without the `hidden`."""
        self._what = " ".join(command)
        self._output = OutputRing(hidden=hidden)
        self._exited, self._exit_status = threading.Event(), 0
        self._stop_grace_s = stop_grace_s
        self._guard, self._control, status = self._launch_guard(command, env, cwd)
        self._watcher = threading.Thread(target=self._watch, args=(status,), name=f"watch {command[0]}", daemon=True)
        self.pid = self._await_exec(status)
        self._watcher.start()

    def poll(self) -> int | None:
        """None while it runs, else its exit status; -N if signal N ended it."""
        return self._exit_status if self._exited.is_set() else None

    def wait(self, timeout_s: float) -> int | None:
        """As `poll`, after waiting for its end for at most `timeout_s` seconds."""
        self._exited.wait(timeout_s)
        return self.poll()

    def logs(self, tail: int = 50) -> str:
        """The last lines of stdout and stderr together, complete once `poll` gives a status."""
        return self._output.tail(tail)

    def stop(self) -> None:
        """Ends it and waits until nothing of it is left. Raises `LaunchFailed` if the kernel will not let it go."""
        with suppress(BrokenPipeError, ValueError):  # the guard has ended; or stop was called before and closed the pipe
            os.write(self._control.fileno(), b"S")
        self._watcher.join(self._stop_grace_s + _KILL_TAKES_S)
        if self._watcher.is_alive():
            raise LaunchFailed(self._what, f"process {self.pid} could not be ended", self.logs())
        self._control.close()

    def _launch_guard(
        self, command: Sequence[str], env: Mapping[str, str], cwd: Path | None
    ) -> tuple[subprocess.Popen[bytes], IO[bytes], int]:
        with ExitStack() as ours, ExitStack() as theirs:
            control, control_end = _pipe(theirs, ours)
            status_end, status = _pipe(ours, theirs)
            numbers = [control, status, os.getpid(), self._stop_grace_s, min(ORPHAN_GRACE_S, self._stop_grace_s)]
            try:
                guard = subprocess.Popen(
                    [sys.executable, "-I", "-S", str(_GUARD), *map(str, numbers), *command],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    pass_fds=(control, status),
                    env=dict(env),
                    cwd=cwd,
                )
            except (OSError, ValueError) as exc:  # ValueError: a zero byte in an argument
                raise LaunchFailed(self._what, _NOT_RUN.format(exc)) from exc
            ours.pop_all()
            return guard, os.fdopen(control_end, "wb", buffering=0), status_end

    def _await_exec(self, status: int) -> int:
        """The pid that the guard reports. If it reports a failure, everything is closed here, for nobody else will."""
        word, _, number = _first_line(status).partition(b" ")
        if word == b"pid":
            return int(number)
        os.close(status)
        self._control.close()
        if not word:
            self._guard.kill()
        log, _ = self._guard.communicate()
        reason = os.strerror(int(number)) if word else "its guard did not start"
        raise LaunchFailed(self._what, _NOT_RUN.format(reason), log.decode(errors="replace").strip())

    def _watch(self, status: int) -> None:
        """Until the guard has ended: keeps the output, notes the exit status. One thread, so the order of both is certain."""
        output = self._guard.stdout
        assert output is not None
        os.set_blocking(output.fileno(), False)
        with selectors.DefaultSelector() as selector, output, os.fdopen(status, "rb", buffering=0) as reports:
            selector.register(output, selectors.EVENT_READ)
            selector.register(reports, selectors.EVENT_READ)
            guarded = True
            while guarded:
                ready = {key.fileobj for key, _ in selector.select()}
                if output in ready and self._keep_output(output):
                    selector.unregister(output)
                if reports in ready:
                    guarded = self._note(reports.read(64) or b"", output)
        self._finish()

    def _keep_output(self, output: IO[bytes]) -> bool:
        """Reads what a pipe can hold, and not for ever if the server prints faster; whether the output has ended."""
        for _ in range(_PIPE_HOLDS // _CHUNK):
            try:
                data = os.read(output.fileno(), _CHUNK)
            except BlockingIOError:
                return False
            if not data:
                return True
            self._output.write(data)
        return False

    def _note(self, report: bytes, output: IO[bytes]) -> bool:
        """Takes in `exit STATUS`; whether the guard still lives."""
        self._keep_output(output)
        if report and not self._exited.is_set():
            self._exit_status = int(report.split()[1])
            self._exited.set()
        return bool(report)

    def _finish(self) -> None:
        """The guard is gone. If somebody killed it, it has reported no exit, and what it guarded is ended from here."""
        result = self._guard.wait()
        if not self._exited.is_set():
            self._output.write(b"openenv_client: the guard of this server was killed, and so is the server\n")
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self._exit_status = result
            self._exited.set()


def _pipe(reader: ExitStack, writer: ExitStack) -> tuple[int, int]:
    reading, writing = os.pipe()
    reader.callback(os.close, reading)
    writer.callback(os.close, writing)
    return reading, writing


def _first_line(status: int) -> bytes:
    """What the guard says first; empty if it says nothing."""
    with selectors.DefaultSelector() as selector:
        selector.register(status, selectors.EVENT_READ)
        line = b""
        while not line.endswith(b"\n") and selector.select(_GUARD_ANSWERS_S):
            byte = os.read(status, 1)
            if not byte:
                return b""
            line += byte
    return line.strip()
