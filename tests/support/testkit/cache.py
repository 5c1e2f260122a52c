"""What the suite downloads, kept outside the tree between runs: in $OPENENV_GATEWAY_TEST_CACHE, else in
~/.cache/openenv-gateway-tests.

A folder is built once, whole or not at all; a changed requirement makes another folder; nothing is ever upgraded in place.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

BUILD_TIMEOUT_S = 540.0
_COMPLETE = ".complete"


class BuildFailed(RuntimeError):
    """A folder could not be built; the message holds what the installer printed."""


class NetworkAbsent(BuildFailed):
    """It could not be built because no package index can be reached: the one reason for which tests may skip."""


class Installer:
    """Runs the commands that fill one folder; together they take at most BUILD_TIMEOUT_S seconds."""

    def __init__(self, no_network: Sequence[str], env: Mapping[str, str], cwd: Path | None = None) -> None:
        """`no_network`: what a command prints when it cannot reach its index; `env`: variables beside the suite's own."""
        self._no_network, self._env, self._cwd = no_network, {**os.environ, **env}, cwd
        self._deadline = time.monotonic() + BUILD_TIMEOUT_S

    def run(self, *command: str) -> None:
        """Run one command to its end. Raises BuildFailed, or NetworkAbsent."""
        process = subprocess.Popen(
            command,
            cwd=self._cwd,
            env=self._env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=max(1.0, self._deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            raise BuildFailed(f"{' '.join(command)} did not finish within {BUILD_TIMEOUT_S:g} s:\n{output}") from None
        if process.returncode != 0:
            failure = NetworkAbsent if any(sign in output for sign in self._no_network) else BuildFailed
            raise failure(f"{' '.join(command)} failed with exit code {process.returncode}:\n{output}")


def kept(name: str, requirements: Sequence[str], build: Callable[[Path], None]) -> Path:
    """The folder that `build` fills with the requirements, filled now if no earlier run did it.

    Safe from several processes at once: they wait for the one that builds, at most BUILD_TIMEOUT_S seconds. Raises
    BuildFailed, and what `build` raises.
    """
    target = folder() / f"{name}-{_digest(requirements)}"
    if (target / _COMPLETE).exists():
        return target
    with _locked(target.with_name(f"{target.name}.lock")):
        if not (target / _COMPLETE).exists():
            # Built in place, since scripts name their interpreter by its path; the mark, written last, tells whole from half.
            shutil.rmtree(target, ignore_errors=True)
            build(target)
            (target / _COMPLETE).write_text("\n".join(requirements), "utf-8")
    return target


def folder() -> Path:
    """Where all of them lie; made if it is not there."""
    chosen = os.environ.get("OPENENV_GATEWAY_TEST_CACHE")
    place = Path(chosen) if chosen else Path.home() / ".cache" / "openenv-gateway-tests"
    place.mkdir(parents=True, exist_ok=True)
    return place


@contextmanager
def alone(what: str) -> Iterator[None]:
    """Nobody else on this machine who uses this folder is inside at the same time: for what there is but once, as a port of
    fixed number. Raises BuildFailed when somebody stays inside for BUILD_TIMEOUT_S seconds."""
    with _locked(folder() / f"{what}.lock"):
        yield


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on the file; the kernel frees it if its holder dies. Polls, since flock has no deadline."""
    deadline = time.monotonic() + BUILD_TIMEOUT_S
    with path.open("w") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise BuildFailed(f"another process has held {path} for {BUILD_TIMEOUT_S:g} s") from None
                time.sleep(0.1)
        yield


def _digest(requirements: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(requirements).encode()).hexdigest()[:12]
