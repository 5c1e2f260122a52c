"""A real launch of one environment, as doctor makes it."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from testkit.gateways import environment_settings
from testkit.leftovers import MARK, new_mark, wait_until_gone
from testkit.scripted import ScriptedServer, error

from openenv_gateway.doctor.finding import Finding, Status
from openenv_gateway.doctor.trial import try_launch
from openenv_gateway.settings import EnvironmentSettings, Source

HALF_A_SERVER = """
import http.server, sys
class Pages(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/health" else 404)
        self.end_headers()
        self.wfile.write(b'{"status": "healthy"}' if self.path == "/health" else b"")
print("half a server", flush=True)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Pages).serve_forever()
"""


@pytest.fixture
def mark(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    found = new_mark()
    monkeypatch.setenv(MARK, found[MARK])
    return found


def launched(command: str, **changes: Any) -> EnvironmentSettings:
    return environment_settings("", "game", source=Source("cmd", command), **changes)


def test_a_launch_that_works_tells_how_long_each_phase_took_and_leaves_nothing(mark: dict[str, str]) -> None:
    found = try_launch(environment_settings("", "game", source=Source("demo")))
    assert (found.check, found.status) == ("launch of game", Status.OK), found.said
    assert list(found.details["seconds"]) == ["start", "healthy", "schema", "reset", "stop"]
    assert "healthy " in found.said and "reset " in found.said
    assert wait_until_gone(mark, 1) == []


@pytest.mark.parametrize(
    ("command", "phase", "words"),
    [
        ("/no/such/program {port}", "healthy", "/no/such/program: not found"),
        ("sh -c 'echo the model is missing; exit 3' {port}", "healthy", "exited prematurely with code 3"),
        ("sleep 60", "healthy", "no {port} in it"),
    ],
)
def test_a_launch_that_fails_names_the_phase_the_reason_and_the_last_lines(
    mark: dict[str, str], command: str, phase: str, words: str
) -> None:
    found = try_launch(launched(command, timeouts_launch_s=0.5))
    assert (found.status, found.details["phase"]) == (Status.FAILED, phase)
    assert found.said.startswith(f"failed at {phase}: ") and words in found.said and found.remedy
    if "model" in command:
        assert found.details["log"] == ["the model is missing"] and "the model is missing" in found.said
    assert wait_until_gone(mark, 1) == []


def test_a_launch_that_cannot_begin_fails_at_start(tmp_path: Path) -> None:
    found = try_launch(environment_settings("", "game", source=Source("cmd", "sleep 9", cwd=tmp_path / "gone")))
    assert (found.details["phase"], "there is no such folder" in found.said) == ("start", True), found.said


def test_a_server_without_a_schema_fails_there_with_its_log(mark: dict[str, str], tmp_path: Path) -> None:
    script = tmp_path / "half.py"
    script.write_text(HALF_A_SERVER)
    found = try_launch(launched(f"{sys.executable} {script} {{port}}"))
    assert (found.status, found.details["phase"]) == (Status.FAILED, "schema")
    assert "half a server" in found.details["log"] and "it has no /schema" in found.said
    assert "stop" in found.details["seconds"]
    assert wait_until_gone(mark, 1) == []


async def remotely(url: str) -> Finding:
    return await asyncio.to_thread(try_launch, environment_settings(url, "game", reset={"seed": 7}))


async def test_a_server_that_runs_elsewhere_is_asked_and_left_running() -> None:
    async with ScriptedServer() as server:
        found = await remotely(server.url)
        assert (found.status, list(found.details["seconds"])) == (Status.OK, ["healthy", "schema", "reset"]), found.said
        assert [request.frame for request in server.requests] == [{"type": "reset", "data": {"seed": 7}}]
        await server.until(lambda: server.sessions_open == 0)
        url = server.url
    gone = await remotely(url)
    assert (gone.status, gone.details["phase"], "Cannot reach" in gone.said) == (Status.FAILED, "healthy", True)


async def test_a_full_server_that_runs_elsewhere_is_no_failure() -> None:
    async with ScriptedServer(capacity=0) as server:
        found = await remotely(server.url)
    assert (found.status, "all its sessions are in use" in found.said) == (Status.NOTE, True), found.said


async def test_an_environment_that_cannot_be_made_or_reset_fails_at_reset() -> None:
    async with ScriptedServer(factory_error="no ROM") as server:
        found = await remotely(server.url)
    assert (found.details["phase"], "no ROM" in found.said) == ("reset", True), found.said
    async with ScriptedServer(respond=lambda number, frame: error("EXECUTION_ERROR", "no board")) as server:
        found = await remotely(server.url)
    assert (found.details["phase"], "no board" in found.said) == ("reset", True), found.said


def test_an_error_of_somebody_elses_provider_is_told_with_its_type(monkeypatch: pytest.MonkeyPatch) -> None:
    class Theirs:
        def start(self) -> str:
            raise KeyError("MODAL_TOKEN")

        def stop(self) -> None:
            return

        def logs(self, tail: int) -> str:
            return ""

    monkeypatch.setattr("openenv_gateway.doctor.trial.provider_for", lambda source: Theirs())
    found = try_launch(launched("theirs"))
    assert (found.status, found.said) == (Status.FAILED, "failed at start: KeyError: 'MODAL_TOKEN'")


def test_a_finding_of_a_failed_launch_can_be_written_as_json() -> None:
    told = json.loads(json.dumps(try_launch(launched("false {port}")).as_json()))
    assert (told["status"], told["details"]["phase"], told["check"]) == ("failed", "healthy", "launch of game")
