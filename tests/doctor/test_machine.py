"""What doctor finds out about the machine that it runs on."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest
from testkit.gateways import environment_settings, serving
from testkit.scripted import ScriptedServer

from openenv_gateway.doctor import machine
from openenv_gateway.doctor.finding import Status

GB = 10**9


def test_a_python_that_is_too_old_fails_and_this_one_does_not() -> None:
    assert machine.python_version().status is Status.OK
    old = machine.python_version((3, 10, 9))
    assert (old.status, old.said) == (Status.FAILED, "Python 3.10.9 is too old")
    assert old.remedy == "Install Python 3.11 or newer."


@pytest.mark.parametrize(
    ("free", "status", "said"),
    [
        (5 * GB, Status.OK, "5.0 GB free"),
        (2 * GB - 1, Status.NOTE, "only 2.0 GB free"),
        (GB // 10, Status.FAILED, "only 0.1 GB free"),
    ],
)
def test_little_room_is_a_note_and_no_room_a_failure(free: int, status: Status, said: str) -> None:
    found = machine.judge_room("disk", free, "free", 2 * GB, GB, "Make room.")
    assert (found.status, found.said, found.details) == (status, said, {"free_bytes": free})
    assert found.remedy == ("" if status is Status.OK else "Make room.")


def test_the_room_of_this_machine_is_measured(tmp_path: Path) -> None:
    assert machine.disk(tmp_path).details["free_bytes"] > 0
    assert 0 < machine.memory().details["free_bytes"] < 2**60


def test_a_container_may_have_less_memory_than_its_machine(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("600000000\n")
    (tmp_path / "memory.current").write_text("100000000\n")
    assert machine.allowed_memory(tmp_path) == 500_000_000
    (tmp_path / "memory.max").write_text("max\n")
    assert machine.allowed_memory(tmp_path) is None


def test_without_uv_and_git_their_sources_fail_and_others_get_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    for check in (machine.uv, machine.git):
        assert check(is_needed=False).status is Status.NOTE
        needed = check(is_needed=True)
        assert (needed.status, "not there" in needed.said, needed.remedy != "") == (Status.FAILED, True, True)


def test_uv_and_git_are_found_with_their_versions() -> None:
    assert (machine.uv(is_needed=True).status, machine.uv(is_needed=True).said[:3]) == (Status.OK, "uv ")
    assert machine.git(is_needed=True).said.startswith("git version ")


def test_a_free_port_is_fine_and_one_that_something_else_has_is_not() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        found = machine.port("127.0.0.1", number)
        assert found.status is Status.FAILED
        assert found.said == f"{number} on 127.0.0.1 is in use, by something that is no gateway"
    assert machine.port("127.0.0.1", number).status is Status.OK
    assert machine.ports_for_servers().status is Status.OK


async def test_a_port_on_which_a_gateway_runs_is_only_a_note() -> None:
    async with ScriptedServer() as server, serving(environment_settings(server.url)) as served:
        found = await asyncio.to_thread(machine.port, "127.0.0.1", served.port)
    assert (found.status, found.said) == (Status.NOTE, f"{served.port} on 127.0.0.1 is in use, by a gateway that runs")


def test_an_address_of_another_machine_fails() -> None:
    found = machine.port("192.0.2.1", 8700)
    assert (found.status, "192.0.2.1:8700" in found.said) == (Status.FAILED, True)
