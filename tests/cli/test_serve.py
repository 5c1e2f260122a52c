"""`openenv-gateway serve` as a process: what it prints, when it refuses, what it leaves behind (nothing)."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from testkit.commands import GATEWAY, get, post, run, serving
from testkit.leftovers import marked, new_mark, wait_until_gone

SLEEPER = f"{sys.executable} -c 'import time; time.sleep(600)' {{port}}"


# --- the main job ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_demo_is_served_and_a_signal_ends_everything_with_exit_0(number: signal.Signals) -> None:
    mark = new_mark()
    with serving("demo", mark=mark) as (process, url):
        assert post(f"{url}?session=me", "tools/call", {"name": "step", "arguments": {"cell": 5}})["isError"] is False
        base = url.removesuffix("/envs/demo/mcp")
        assert get(f"{base}/health") == (200, {"status": "healthy"})
        assert get(f"{base}/ready")[1] == {"ready": True, "draining": False, "environments": {"demo": True}}
        assert get(f"{base}/schemas/tool_result.schema.json")[1]["$schema"].endswith("2020-12/schema")
        assert [tool["name"] for tool in post(f"{base}/mcp", "tools/list", {})["tools"]] == ["reset", "step", "state"]
        assert len(marked(mark)) >= 2
        process.send_signal(number)
        assert process.wait(10) == 0
    assert wait_until_gone(mark, 5) == []


def test_several_environments_have_a_url_each_and_none_at_the_root() -> None:
    mark = new_mark()
    with serving("first=demo", "second=demo?exposure=agent", mark=mark) as (_, url):
        assert [tool["name"] for tool in post(url, "tools/list", {})["tools"]] == ["reset", "step", "state"]
        second = post(url.replace("/first/", "/second/"), "tools/list", {})["tools"]
        assert [tool["name"] for tool in second] == ["step", "observe"]
        with pytest.raises(OSError, match="404"):
            post(url.replace("/envs/first", ""), "tools/list", {})
    assert wait_until_gone(mark, 10) == []


def test_the_banner_is_short_and_ends_with_what_to_paste() -> None:
    mark = new_mark()
    command = [*GATEWAY, "serve", "demo", "--port", "0"]
    pipes: dict[str, Any] = {"stderr": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env={**os.environ, **mark}, **pipes) as process:
        assert process.stderr is not None and process.stdout is not None
        lines = [process.stderr.readline() for _ in range(3)]
        process.terminate()
        rest, out = process.stderr.read(), process.stdout.read()
        assert process.wait(10) == 0
    assert lines[0].split()[:2] == ["demo", "demo"] and "/envs/demo/mcp" in lines[0]
    assert lines[1].startswith("Paste:  claude mcp add --transport http demo http://127.0.0.1:")
    assert "openenv-gateway config" in lines[2]
    assert (rest, out) == ("", "")
    assert wait_until_gone(mark, 5) == []


def test_kill_9_of_the_gateway_leaves_no_environment_server() -> None:
    mark = new_mark()
    with serving("demo", mark=mark) as (process, _):
        process.send_signal(signal.SIGKILL)
        process.wait(5)
    assert wait_until_gone(mark, 5) == []


def test_a_signal_while_a_server_is_launched_ends_the_launch() -> None:
    mark = new_mark()
    command = [*GATEWAY, "serve", f"cmd:{SLEEPER}", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **mark}) as process:
        deadline = time.monotonic() + 10
        while len(marked(mark)) < 3 and time.monotonic() < deadline:
            time.sleep(0.05)
        process.terminate()
        assert process.wait(10) == 0
    assert wait_until_gone(mark, 5) == []


# --- bad input: a clear message, an exit code, nothing started --------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["bogus"], 2, 'unknown source "bogus"'),
        ([], 2, "no environment: name at least one"),
        (["demo?step_timout_s=5"], 2, "step_timeout_s"),
        (["demo?step_timeout_s=soon"], 2, "step_timeout_s"),
        (["demo", "demo"], 2, "demo"),
        (["docker:chess-env"], 2, "cannot launch docker"),
        (["demo", "--port", "70000"], 2, "65535"),
        (["demo", "--host", "0.0.0.0"], 2, "--unprotected"),
        (["demo", "--config", "/nonexistent.toml"], 2, "/nonexistent.toml"),
        (["http://127.0.0.1:9"], 1, "Cannot reach the environment server at http://127.0.0.1:9"),
        (["cmd:false {port}"], 1, "false"),
        (["cmd:/no/such/program {port}"], 1, "/no/such/program"),
    ],
)
def test_bad_input_is_told_and_starts_nothing(arguments: list[str], code: int, words: str) -> None:
    mark = new_mark()
    done = run("serve", *arguments, mark=mark)
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert marked(mark) == []


def test_a_port_in_use_is_told_before_anything_is_launched() -> None:
    mark = new_mark()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = run("serve", "demo", "--port", str(taken.getsockname()[1]), mark=mark)
    assert done.returncode == 1
    assert "Address already in use" in done.stderr and "--port" in done.stderr
    assert marked(mark) == []


def test_a_config_with_five_faults_reports_all_five_with_their_lines(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text(
        "\n".join(
            [
                "port = 99999",
                "drain_timeout = 5",
                "[environments.chess]",
                'source = "ftp://somewhere"',
                'step_timeout_s = "soon"',
                'exposure = "everything"',
            ]
        )
    )
    for command in (["validate", str(file)], ["serve", "--config", str(file)]):
        done = run(*command)
        assert done.returncode == (1 if command[0] == "validate" else 2)
        for line in (1, 2, 4, 5, 6):
            assert f"gateway.toml:{line}:" in done.stderr, done.stderr
        assert "5 faults" in done.stderr


def test_a_config_file_is_served(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text('[environments.game]\nsource = "demo"\nreset = { seed = 4 }\nreward = "meta"\n')
    assert run("validate", str(file)).stdout.endswith("is valid. Environments: game\n")
    mark = new_mark()
    with serving("--config", str(file), mark=mark) as (_, url):
        result = post(f"{url}?session=me", "tools/call", {"name": "step", "arguments": {"cell": 5}})
        assert "reward" not in result["structuredContent"] and result["_meta"]["openenv/reward"] == 0.0
        assert post(f"{url}?session=me", "tools/call", {"name": "state"})["structuredContent"]["state"]["seed"] == 4
    assert wait_until_gone(mark, 10) == []
