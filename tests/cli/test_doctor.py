"""`openenv-gateway doctor` as a process: what it says, its exit codes, what it leaves behind (nothing)."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from typing import Any

import pytest
from testkit import images
from testkit.commands import GATEWAY, run
from testkit.containers import docker
from testkit.leftovers import marked, new_mark, wait_until_gone

CHECKS = ["python", "uvloop", "uv", "git", "disk", "memory", "loopback"]
NOTHING_THERE = {"DOCKER_HOST": "unix:///nonexistent/docker.sock"}


def findings(*arguments: str, code: int = 0, env: dict[str, str] | None = None) -> dict[str, dict[str, Any]]:
    done = run("doctor", "--json", *arguments, mark=env)
    assert (done.returncode, done.stderr) == (code, ""), done.stdout
    page = json.loads(done.stdout)
    assert page["ok"] is (code == 0)
    return {finding["check"]: finding for finding in page["findings"]}


def test_the_machine_is_checked_without_any_spec_and_absent_things_are_notes() -> None:
    found = findings("--port", "0", env=NOTHING_THERE)
    assert list(found)[: len(CHECKS)] == CHECKS
    assert found["docker"]["status"] == "note" and "port" not in found


def test_a_spec_is_launched_for_real_and_each_line_is_for_people() -> None:
    mark = new_mark()
    done = run("doctor", "demo", "--port", "0", mark=mark)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    lines = done.stdout.splitlines()
    assert lines[0].startswith("ok      python: Python 3.")
    assert lines[-1].startswith("ok      launch of demo: demo: start ") and ", reset " in lines[-1]
    assert wait_until_gone(mark, 5) == []


def test_a_launch_that_fails_gives_exit_code_1_the_reason_and_the_last_lines() -> None:
    command = "cmd:sh -c 'echo the level file is missing >&2; exit 3' {port}"
    done = run("doctor", "demo", f"broken={command}", "--port", "0")
    assert done.returncode == 1
    told = done.stdout.partition("failed  launch of broken: ")[2]
    assert told.startswith("failed at healthy: Launching ") and "code 3" in told
    assert "\n        the level file is missing\n" in told and "\n        → " in told
    assert "ok      launch of demo" in done.stdout
    assert findings(f"broken={command}", "--port", "0", code=1)["launch of broken"]["details"]["log"] == [
        "the level file is missing"
    ]


def test_a_port_that_is_taken_fails() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        found = findings("--port", str(taken.getsockname()[1]), code=1, env=NOTHING_THERE)
    assert found["port"]["status"] == "failed" and "--port" in found["port"]["remedy"]


def test_an_engine_that_a_spec_needs_and_that_is_not_there_fails() -> None:
    found = findings("docker:chess-env:latest", "--port", "0", code=1, env=NOTHING_THERE)
    assert found["docker"]["status"] == "failed"
    assert found["launch of chess-env"]["status"] == "failed"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["bogus"], 'unknown source "bogus"'), (["--port", "70000"], "65535"), (["demo", "demo"], "used twice")],
)
def test_what_makes_no_sense_is_a_usage_error_and_nothing_is_launched(arguments: list[str], words: str) -> None:
    mark = new_mark()
    done = run("doctor", *arguments, mark=mark)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert marked(mark) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_in_the_middle_of_a_launch_stops_it(number: signal.Signals) -> None:
    mark = new_mark()
    command = [*GATEWAY, "doctor", "cmd:sleep 600?launch_timeout_s=60", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **mark}) as process:
        deadline = time.monotonic() + 20
        while len(marked(mark)) < 3 and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(number)
        assert process.wait(20) == 130
    assert wait_until_gone(mark, 5) == []


@pytest.mark.docker
def test_an_image_is_looked_for_launched_and_removed_again(docker_engine: None) -> None:
    image = images.openenv("LABEL test=doctor")  # nobody else's
    found = findings(f"counter=docker:{image}", "--port", "0")
    assert found[f"image {image}"]["said"].startswith("it is there, ")
    assert found["docker disk"]["status"] in ("ok", "note")
    assert list(found["launch of counter"]["details"]["seconds"]) == ["start", "healthy", "schema", "reset", "stop"]
    assert docker("ps", "--all", "--quiet", "--filter", f"ancestor={image}") == ""


@pytest.mark.docker
def test_an_image_that_cannot_be_had_is_a_note_and_its_launch_fails_with_the_engines_words(docker_engine: None) -> None:
    found = findings("docker:registry.invalid/no/such:image", "--port", "0", code=1)
    assert found["image registry.invalid/no/such:image"]["status"] == "note"
    failed = found["launch of such"]
    assert failed["details"]["phase"] == "start" and "registry.invalid" in failed["said"] and failed["remedy"]
