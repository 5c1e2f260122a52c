"""testkit.servers and the fixture `launch`: who gets which server, and that none is left."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import psutil
import pytest
from testkit import servers, venvs

pytestmark = pytest.mark.real


class Launch(Protocol):
    def __call__(self, environment: str) -> servers.Server: ...


def test_the_same_request_gives_the_same_server_until_it_has_ended(launch: Launch) -> None:
    first = launch("counter")
    assert launch("counter") is first
    first.kill()
    assert first.poll() == -9
    second = launch("counter")
    assert second.pid != first.pid and second.poll() is None


def test_leaving_the_block_ends_the_server(venv_python: Callable[[str], Path]) -> None:
    venv_python(venvs.OPENENV_0_10)
    with servers.launch("counter") as server:
        assert os.getpgid(server.pid) == server.pid
    assert not psutil.pid_exists(server.pid)


def test_output_that_never_comes_is_an_error_that_shows_what_came(launch: Launch) -> None:
    with pytest.raises(TimeoutError, match="'no such line' was not printed within 0.1 s(?s:.*)startup complete"):
        launch("counter").wait_for_output("no such line", 0.1)


def test_a_generated_project_is_a_copy_of_the_one_that_was_made_first(
    venv_python: Callable[[str], Path], tmp_path: Path
) -> None:
    venv_python(venvs.OPENENV_0_10)
    first, second = servers.generate(tmp_path / "first"), servers.generate(tmp_path / "second")
    (first / "uv.lock").write_text("spoilt", "utf-8")
    assert "openenv" in (second / "uv.lock").read_text("utf-8")
    assert (servers.generate(tmp_path / "third") / "uv.lock").read_text("utf-8") == (second / "uv.lock").read_text("utf-8")
    assert (second / "openenv.yaml").is_file() and (second / "server" / "app.py").is_file()
