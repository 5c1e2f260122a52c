"""The gateway's own image, and containers for tests, by the docker command as people use it."""

from __future__ import annotations

import hashlib
import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from testkit import cache, images
from testkit.commands import get
from testkit.patience import patience

ROOT: Final = Path(__file__).parents[3]
MAKES_THE_IMAGE: Final = ("Dockerfile", ".dockerignore", "pyproject.toml", "gateway", "client", "schemas")
"""Of what is in the context: the README and the licence do nothing in it."""
HARDENED: Final = ("--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--security-opt", "no-new-privileges")


def gateway_image() -> str:
    """The tag of the image of the repository's own Dockerfile; built unless there is one of the same files.

    Raises cache.BuildFailed.
    """
    tag = f"{images.REPOSITORY}:gateway-{_digest()}"
    with cache.alone("docker-gateway"):
        if not images.exists(tag):
            images.build(tag, ROOT)
    return tag


def docker(*arguments: str, timeout_s: float = 60) -> str:
    """What the command prints on stdout. Raises AssertionError, with all that it printed, if it fails."""
    done = subprocess.run(["docker", *arguments], capture_output=True, text=True, timeout=timeout_s)
    if done.returncode != 0:
        raise AssertionError(f"docker {' '.join(arguments)} failed with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


@contextmanager
def running(image: str, *command: str, options: tuple[str, ...] = ()) -> Iterator[str]:
    """The id of a container of this image, which is removed at the end, whatever it does."""
    container = docker("run", "--detach", *options, image, *command)
    try:
        yield container
    finally:
        docker("rm", "--force", "--volumes", container)


def published(container: str, port: int = 8700) -> str:
    """The URL of a port that the engine has published on loopback. Raises ConnectionError while the container is down."""
    ports = json.loads(docker("inspect", "--format", "{{json .NetworkSettings.Ports}}", container))
    if not ports.get(f"{port}/tcp"):
        raise ConnectionError(f"{container} publishes nothing: it does not run at the moment")
    return f"http://127.0.0.1:{ports[f'{port}/tcp'][0]['HostPort']}"


def state(container: str) -> dict[str, Any]:
    """What the engine says about a container's state."""
    found: dict[str, Any] = json.loads(docker("inspect", "--format", "{{json .State}}", container))
    return found


def wait_for(condition: Callable[[], bool], what: str, timeout_s: float) -> None:
    """For what nobody tells. Raises AssertionError if it does not become true in time."""
    deadline = time.monotonic() + patience(timeout_s)
    while not condition():
        assert time.monotonic() < deadline, f"not within {timeout_s:g} s: {what}"
        time.sleep(0.1)


def serves(container: str) -> bool:
    """Whether a gateway in a container answers on its published port. Raises AssertionError if its container has ended."""
    now = state(container)["Status"]
    assert now in ("running", "restarting"), docker("logs", container)
    try:
        return now == "running" and get(f"{published(container)}/health")[0] == 200
    except OSError:
        return False


def _digest() -> str:
    found = hashlib.sha256(images.base().encode())
    for name in MAKES_THE_IMAGE:
        path = ROOT / name
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and "__pycache__" not in file.parts and ".egg-info" not in str(file):
                found.update(f"{file.relative_to(ROOT)}\n".encode() + file.read_bytes())
    return found.hexdigest()[:12]
