"""Real OpenEnv servers: each a process of its own, in a virtual environment of its own, on a port of its own.

    with servers.launch("counter", venvs.OPENENV_0_10, {"MAX_SESSIONS": "4"}) as server:
        ... server.base_url ...

The environments lie in `tests/real/environments`; their README says what each is for.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from testkit import cache, venvs

ENVIRONMENTS: Final = Path(__file__).parents[2] / "real" / "environments"
START_TIMEOUT_S: Final = 120.0
KILL_TIMEOUT_S: Final = 10.0
GENERATE_TIMEOUT_S: Final = 240.0
GENERATED: Final = "made_env"

_SERVING = re.compile(r"running on (http://127\.0\.0\.1:\d+)")
_KEPT = ("PATH", "HOME", "LANG", "TMPDIR", "SSL_CERT_FILE")


class ServerFailed(RuntimeError):
    """A server did not come up; the message holds its output."""


class Server:
    """A running server process. `base_url` is known once it serves."""

    def __init__(self, command: Sequence[str], cwd: Path, env: Mapping[str, str]) -> None:
        self.command = tuple(command)
        self.base_url = ""
        self._lines: list[str] = []
        self._changed = threading.Condition()
        self._ended = False
        self._process = subprocess.Popen(
            command,
            cwd=cwd,
            env=small_environment(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, name=f"output of {self._process.pid}", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """The process, which is also the leader of its group."""
        return self._process.pid

    def log(self) -> str:
        """All that it has printed so far."""
        with self._changed:
            return "".join(self._lines)

    def poll(self) -> int | None:
        """Its exit status, negative for a signal; None while it runs."""
        return self._process.poll()

    def kill(self) -> None:
        """End the whole group at once, also a stopped one, and wait until the process is gone. Twice is fine."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # the group is gone already
        self._process.wait(KILL_TIMEOUT_S)

    def wait(self, timeout_s: float) -> int:
        """Wait until the process has ended by itself; its exit status. Raises subprocess.TimeoutExpired."""
        return self._process.wait(timeout_s)

    def wait_for_output(self, text: str, timeout_s: float = 10.0) -> str:
        """Wait until it has printed the text; all output so far. Raises TimeoutError if it does not in time."""
        with self._changed:
            if not self._changed.wait_for(lambda: text in "".join(self._lines), timeout_s):
                raise TimeoutError(f"{text!r} was not printed within {timeout_s:g} s:\n{''.join(self._lines)[-4000:]}")
        return self.log()

    def wait_until_serving(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Wait until it accepts connections and `/health` answers 200. Raises ServerFailed with its output."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            self._changed.wait_for(lambda: self._ended or _SERVING.search("".join(self._lines[-20:])), timeout_s)
            found = _SERVING.search("".join(self._lines))
        if found is None:
            raise ServerFailed(f"{' '.join(self.command)} did not serve within {timeout_s:g} s:\n{self.log()[-4000:]}")
        self.base_url = found.group(1)
        self._check_health(max(1.0, deadline - time.monotonic()))

    def _check_health(self, timeout_s: float) -> None:
        try:
            with urllib.request.urlopen(f"{self.base_url}/health", timeout=timeout_s) as answer:
                answer.read()
        except urllib.error.HTTPError as error:
            error.close()
            raise ServerFailed(f"{self.base_url}/health answered {error.code}:\n{self.log()[-4000:]}") from None
        except OSError as error:
            raise ServerFailed(f"{self.base_url}/health did not answer: {error}\n{self.log()[-4000:]}") from error

    def close(self) -> None:
        """End the process and everything that it started, and its reader."""
        self.kill()
        self._reader.join(KILL_TIMEOUT_S)

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as output:
            for line in output:
                with self._changed:
                    self._lines.append(line)
                    self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()


@contextmanager
def launch(environment: str, package: str = venvs.OPENENV_0_10, env: Mapping[str, str] | None = None) -> Iterator[Server]:
    """A serving server of one of our environments, ended when the block is left.

    `package` is a name in venvs.RECIPES. Raises ServerFailed if it does not come up, VenvFailed as venvs does.
    """
    with launch_command(command(environment, package, "0"), ENVIRONMENTS, env) as server:
        yield server


@contextmanager
def launch_command(command: Sequence[str], cwd: Path, env: Mapping[str, str] | None = None) -> Iterator[Server]:
    """The same for any uvicorn command that was given port 0."""
    server = Server(command, cwd, env or {})
    try:
        server.wait_until_serving()
        yield server
    finally:
        server.close()


@contextmanager
def start(environment: str, package: str = venvs.OPENENV_0_10, env: Mapping[str, str] | None = None) -> Iterator[Server]:
    """As `launch`, without waiting: for servers that are meant not to come up."""
    server = Server(command(environment, package, "0"), ENVIRONMENTS, env or {})
    try:
        yield server
    finally:
        server.close()


def command(environment: str, package: str = venvs.OPENENV_0_10, port: str = "{port}") -> list[str]:
    """The command that serves one of our environments, to be run in any folder; `port` as the launcher writes it."""
    return app_command(f"{environment}:app", ENVIRONMENTS, package, port)


def app_command(app: str, folder: Path, package: str = venvs.OPENENV_0_10, port: str = "0") -> list[str]:
    """The command that serves `app` (module:attribute) of a folder."""
    python = str(venvs.known(package))
    return [python, "-m", "uvicorn", app, "--app-dir", str(folder), "--host", "127.0.0.1", "--port", port]


def generate(folder: Path) -> Path:
    """A new environment project as `openenv init` of openenv 0.10.0 writes it, in `folder`; its app is `server.app:app`.

    Written once and kept (see testkit.cache), since its uv.lock asks a package index for every dependency; this is a copy.
    """
    python = venvs.known(venvs.OPENENV_0_10)
    kept = cache.kept(f"{GENERATED}-project", [str(python)], lambda place: _init(python.with_name("openenv"), place))
    return shutil.copytree(kept / GENERATED, folder / GENERATED)


def _init(tool: Path, folder: Path) -> None:
    search = f"{Path(venvs.uv()).parent}{os.pathsep}{os.environ['PATH']}"
    folder.mkdir()
    done = subprocess.run(
        [str(tool), "init", GENERATED, "--output-dir", str(folder)],
        env=small_environment({"PATH": search}),
        capture_output=True,
        text=True,
        timeout=GENERATE_TIMEOUT_S,
    )
    if done.returncode != 0:
        raise ServerFailed(f"openenv init {GENERATED} failed with exit code {done.returncode}:\n{done.stdout}{done.stderr}")
    if not (folder / GENERATED / "uv.lock").exists():  # init says so and goes on, so that half a project would be kept
        raise ServerFailed(f"openenv init {GENERATED} wrote no uv.lock:\n{done.stdout}{done.stderr}")


def small_environment(extra: Mapping[str, str]) -> dict[str, str]:
    """A small environment, so that a variable of the suite's own never decides what a server does."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    bytecode = str(venvs.cache_folder() / "bytecode")  # outside the tree, and kept: halves the time to start
    return {**kept, "PYTHONUNBUFFERED": "1", "PYTHONHASHSEED": "0", "PYTHONPYCACHEPREFIX": bytecode, **extra}
