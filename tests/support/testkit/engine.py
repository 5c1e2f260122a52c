"""A Docker engine to be stopped and started again: the machine's own one belongs to others too. For root, on Linux.

    with engine.running() as mine:
        mine.take(images.plain())       # from the machine's engine
        ... DOCKER_HOST=mine.host ...
        mine.restart()
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

STARTS_S: Final = 60.0
STOPS_S: Final = 60.0


class EngineAbsent(RuntimeError):
    """This machine cannot run a second engine."""


class Engine:
    """One dockerd with its own data, its own containerd and its own bridge."""

    def __init__(self, folder: Path, bridge: str) -> None:
        self.folder, self._bridge = folder, bridge
        self.host = f"unix://{folder}/docker.sock"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Returns when it answers. Raises RuntimeError with its log."""
        folder = self.folder
        command = [
            "dockerd", "--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec", "--pidfile", f"{folder}/pid",
            "--host", self.host, "--bridge", self._bridge, "--iptables=false", "--ip6tables=false",
        ]  # fmt: skip
        with Path(folder, "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        deadline = time.monotonic() + STARTS_S
        while subprocess.run(["docker", "--host", self.host, "version"], capture_output=True, timeout=30).returncode:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"a second dockerd does not run:\n{Path(folder, 'log').read_text()[-4000:]}")
            time.sleep(0.1)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Returns when it has ended."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(STOPS_S)

    def take(self, image: str) -> None:
        """Have an image that the machine's own engine has."""
        with subprocess.Popen(["docker", "save", image], stdout=subprocess.PIPE) as saved:
            command = ["docker", "--host", self.host, "load", "--quiet"]
            subprocess.run(command, stdin=saved.stdout, check=True, capture_output=True, timeout=120)

    def containers(self) -> list[str]:
        """All that it has."""
        command = ["docker", "--host", self.host, "ps", "--all", "--quiet"]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.split()


@contextmanager
def running() -> Iterator[Engine]:
    """Raises EngineAbsent where none can be."""
    if os.geteuid() != 0 or not (shutil.which("dockerd") and shutil.which("ip")):
        raise EngineAbsent("a second engine needs root, dockerd and ip")
    bridge = f"oegt{os.getpid()}"
    network = f"10.{251 - os.getpid() % 50}.{os.getpid() // 50 % 250}.1/24"
    _ip("link", "add", "name", bridge, "type", "bridge")
    folder = tempfile.mkdtemp(prefix="engine-", dir="/tmp")  # a socket's path is 108 bytes long at most
    engine = Engine(Path(folder), bridge)
    try:
        _ip("addr", "add", network, "dev", bridge)
        _ip("link", "set", bridge, "up")
        engine.start()
        yield engine
    finally:
        engine.stop()
        if os.path.ismount(data := f"{folder}/data"):  # an engine mounts its data on itself, and leaves that
            subprocess.run(["umount", "--recursive", data], check=True, capture_output=True, timeout=30)
        _ip("link", "del", bridge)
        shutil.rmtree(folder)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=30)
