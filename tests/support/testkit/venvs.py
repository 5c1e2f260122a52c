"""Virtual environments of the suite's own, for peers that cannot share ours: other OpenEnv versions, other SDKs.

They live outside the tree and are kept between runs: in $OPENENV_GATEWAY_TEST_CACHE, else in ~/.cache/openenv-gateway-tests.
A changed requirement makes another folder; nothing is ever upgraded in place.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

OPENENV_0_10: Final = "openenv-0.10.0"
OPENENV_CORE_0_3: Final = "openenv-core-0.3.0"
OPENENV_CORE_0_2: Final = "openenv-core-0.2.3"
MCP_1: Final = "mcp-1.30.0"
HOST_CONVERTERS: Final = "host-converters"

RECIPES: Final[Mapping[str, tuple[str, ...]]] = {
    OPENENV_0_10: ("openenv==0.10.0",),
    OPENENV_CORE_0_3: ("openenv-core==0.3.0",),
    OPENENV_CORE_0_2: ("openenv-core==0.2.3",),
    MCP_1: ("mcp==1.30.0",),
    HOST_CONVERTERS: ("openai-agents==0.24.0", "google-genai==3.6.1"),
}
"""The environments that the suite knows, by name: what is installed in each."""

BUILD_TIMEOUT_S = 540.0
_COMPLETE = ".complete"
_NO_NETWORK = ("client error (Connect)", "dns error", "tcp connect error", "Network connectivity is disabled")


class VenvFailed(RuntimeError):
    """An environment could not be built; the message holds what uv printed."""


class NetworkAbsent(VenvFailed):
    """It could not be built because no package index can be reached: the one reason for which tests may skip."""


def known(name: str) -> Path:
    """The python executable of the environment of that name in RECIPES (KeyError for another one); see `venv`."""
    return venv(name, *RECIPES[name])


def venv(name: str, *requirements: str, python: str | None = None) -> Path:
    """The python executable of an environment that holds the requirements, built now if no earlier run has built it.

    `python` is a version or path that uv understands; None means the interpreter that runs the suite. Safe from several
    processes at once: they wait for the one that builds. Takes at most BUILD_TIMEOUT_S seconds to wait and as many to
    build. Raises VenvFailed, or NetworkAbsent.
    """
    interpreter = python or sys.executable
    folder = cache_folder() / f"{name}-{_digest(interpreter, requirements)}"
    executable = folder / "bin" / "python"
    if (folder / _COMPLETE).exists():
        return executable
    with _locked(folder.with_name(f"{folder.name}.lock")):
        if not (folder / _COMPLETE).exists():
            _build(folder, interpreter, requirements)
    return executable


def cache_folder() -> Path:
    """Where the environments are kept; made if it is not there."""
    chosen = os.environ.get("OPENENV_GATEWAY_TEST_CACHE")
    folder = Path(chosen) if chosen else Path.home() / ".cache" / "openenv-gateway-tests"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def uv() -> str:
    """The uv executable: the one installed beside the running python, else the one on PATH. Raises VenvFailed."""
    beside = Path(sys.executable).with_name("uv")
    found = str(beside) if beside.exists() else shutil.which("uv")
    if found is None:
        raise VenvFailed("uv is neither beside the running python nor on PATH; install the extra 'test'")
    return found


def _build(folder: Path, interpreter: str, requirements: Sequence[str]) -> None:
    """Built in place, since scripts name their interpreter by its path; the mark, written last, tells whole from half."""
    shutil.rmtree(folder, ignore_errors=True)
    deadline = time.monotonic() + BUILD_TIMEOUT_S
    _uv("venv", "--quiet", "--python", interpreter, str(folder), deadline=deadline)
    if requirements:
        target = str(folder / "bin" / "python")
        _uv("pip", "install", "--quiet", "--python", target, *requirements, deadline=deadline)
    (folder / _COMPLETE).write_text("\n".join(requirements), "utf-8")


def _uv(*arguments: str, deadline: float) -> None:
    command = [uv(), "--no-progress", *arguments]
    process = subprocess.Popen(
        command,
        env={**os.environ, "UV_PYTHON_DOWNLOADS": "never"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=max(1.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        raise VenvFailed(f"{' '.join(command)} did not finish within {BUILD_TIMEOUT_S:g} s:\n{output}") from None
    if process.returncode != 0:
        failure = NetworkAbsent if any(sign in output for sign in _NO_NETWORK) else VenvFailed
        raise failure(f"{' '.join(command)} failed with exit code {process.returncode}:\n{output}")


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
                    raise VenvFailed(f"another process has held {path} for {BUILD_TIMEOUT_S:g} s") from None
                time.sleep(0.1)
        yield


def _digest(interpreter: str, requirements: Sequence[str]) -> str:
    text = "\n".join([interpreter, sys.version, *requirements])
    return hashlib.sha256(text.encode()).hexdigest()[:12]
