"""The Docker engine, as doctor finds it. In processes of their own: the SDK leaves a socket open where no engine answers."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

from testkit.commands import run


def engine_at(host: str, *specs: str) -> dict[str, Any]:
    done = run("doctor", "--json", "--port", "0", *specs, mark={"DOCKER_HOST": host})
    found: dict[str, Any] = next(each for each in json.loads(done.stdout)["findings"] if each["check"] == "docker")
    return found


def test_no_engine_is_a_note_where_no_environment_needs_it(tmp_path: Path) -> None:
    found = engine_at(f"unix://{tmp_path}/docker.sock")
    assert (found["status"], found["said"]) == ("note", f"no Docker engine is there ({tmp_path}/docker.sock does not exist)")
    assert "Install Docker Engine" in found["remedy"]


def test_an_engine_that_does_not_run_is_told_as_such(tmp_path: Path) -> None:
    path = tmp_path / "docker.sock"
    with socket.socket(socket.AF_UNIX) as left_over:
        left_over.bind(str(path))
    found = engine_at(f"unix://{path}")
    assert found["said"] == f"the Docker engine does not run (nobody listens on {path})"
    assert "start docker" in found["remedy"]


def test_an_address_that_is_none_is_told_with_its_reason() -> None:
    found = engine_at("nonsense://x")
    assert "DOCKER_HOST" in found["remedy"] and "nonsense" in found["said"], found
