"""What dead gateways left, and its removal."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from testkit import images

from openenv_client.providers import LocalDockerProvider
from openenv_client.providers.docker_owner import LABEL
from openenv_client.providers.uv import CLONE_PREFIX
from openenv_gateway.doctor import engine, stale
from openenv_gateway.doctor.finding import Status


def clone(folder: Path, name: str, age_s: float = 3600) -> Path:
    made = folder / f"{CLONE_PREFIX}{name}"
    (made / "src").mkdir(parents=True)
    (made / "src" / "app.py").write_text("app = None\n")
    then = time.time() - age_s
    os.utime(made, (then, then))
    return made


@pytest.fixture
def in_use(tmp_path: Path) -> Iterator[Path]:
    """A clone that a process names in its command line, as uv does."""
    made = clone(tmp_path, "in-use")
    command = [sys.executable, "-c", "import sys; sys.stdin.read()", str(made)]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        yield made
        process.kill()


def test_clones_that_nobody_uses_are_told_and_removed_when_asked(tmp_path: Path, in_use: Path) -> None:
    left, fresh, other = clone(tmp_path, "left"), clone(tmp_path, "fresh", age_s=0), tmp_path / "another-folder"
    other.mkdir()
    (told,) = stale.clones(tmp_path, reap=False)
    assert (told.status, told.details) == (Status.NOTE, {"removed": [], "left": [str(left)]})
    assert told.remedy == "openenv-gateway doctor --reap" and left.exists()
    (reaped,) = stale.clones(tmp_path, reap=True)
    assert (reaped.status, reaped.details) == (Status.OK, {"removed": [str(left)], "left": []})
    assert sorted(tmp_path.iterdir()) == sorted([in_use, fresh, other])
    (again,) = stale.clones(tmp_path, reap=True)
    assert (again.status, again.said) == (Status.OK, "none")


KILLED = """
import os, signal, sys
from openenv_client.providers import LocalDockerProvider
provider = LocalDockerProvider(sys.argv[1])
provider.start_container()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.docker
def test_containers_of_a_killed_process_are_told_and_removed_when_asked_and_no_others(docker_engine: None) -> None:
    ours = LocalDockerProvider(images.plain())
    ours.start_container()
    try:
        subprocess.run([sys.executable, "-c", KILLED, images.plain()], timeout=60, check=False)
        with engine.asked(is_needed=True) as (_, client):
            assert client is not None
            (told,) = stale.containers(client, reap=False)
            left = told.details["left"]
            assert (told.status, len(left) >= 1, told.remedy) == (Status.NOTE, True, "openenv-gateway doctor --reap"), told
            (reaped,) = stale.containers(client, reap=True)
        assert reaped.status is Status.OK and set(left) <= set(reaped.details["removed"])
        assert set(images.containers(LABEL)).isdisjoint(left)
        assert ours.poll() is None, "the container of a process that lives was touched"
    finally:
        ours.close()
