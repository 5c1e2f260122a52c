"""`openenv-gateway serve` as a process: what it prints, when it refuses, what it leaves behind (nothing)."""

from __future__ import annotations

import asyncio
import importlib.util
import json
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
from websockets.sync.client import connect

from openenv_gateway.cli.serve import new_event_loop

SLEEPER = f"{sys.executable} -c 'import time; time.sleep(600)' {{port}}"


# --- the main job ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_demo_is_served_and_a_signal_ends_everything_with_exit_0(number: signal.Signals) -> None:
    mark = new_mark()
    with serving("demo", mark=mark) as (process, url):
        assert post(f"{url}?session=me", "tools/call", {"name": "step", "arguments": {"cell": 5}})["isError"] is False
        base = url.removesuffix("/envs/demo/mcp")
        assert get(f"{base}/health") == (200, {"status": "healthy"})
        ready = get(f"{base}/ready")[1]
        assert ready.pop("details")["demo"]["state"] == "up"
        assert ready == {"ready": True, "draining": False, "environments": {"demo": True}}
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


# --- tokens ----------------------------------------------------------------------------------------------------------

TOKEN = "5f" * 32


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    path = tmp_path / "tokens"
    path.touch(0o600)
    path.write_text(f"agent me {TOKEN}\n")
    return path


def test_beyond_loopback_a_token_file_is_enough_and_the_token_is_asked_for(tokens: Path) -> None:
    mark = new_mark()
    with serving("demo", "--host", "0.0.0.0", "--token-file", str(tokens), mark=mark) as (process, url):
        assert url.startswith("http://127.0.0.1:"), "nobody can connect to 0.0.0.0"
        assert get(url.replace("/envs/demo/mcp", "/health")) == (200, {"status": "healthy"})
        with pytest.raises(OSError, match="401"):
            post(url, "tools/list", {})
        mine = run("tools", url, "--token-env", "MY_TOKEN", mark={"MY_TOKEN": TOKEN})
        assert (mine.returncode, mine.stdout[:6]) == (0, "reset("), mine.stderr
        called = run("call", f"{url}?session=me", "step", '{"cell": 5}', "--token-env", "MY_TOKEN", mark={"MY_TOKEN": TOKEN})
        assert called.returncode == 0, called.stderr
        nobody = run("tools", url)
        assert (nobody.returncode, "--token-env" in nobody.stderr, "Bearer TOKEN" in nobody.stderr) == (1, True, True)
        assert "export MY_TOKEN" in run("tools", url, "--token-env", "MY_TOKEN").stderr
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    assert wait_until_gone(mark, 5) == []


def test_the_banner_of_a_gateway_with_tokens_names_the_variable_and_shows_no_token(tokens: Path) -> None:
    mark = new_mark()
    command = [*GATEWAY, "serve", "demo", "--port", "0", "--token-file", str(tokens)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **mark}) as process:
        assert process.stderr is not None
        lines = [process.stderr.readline() for _ in range(3)]
        process.terminate()
        assert process.wait(10) == 0
    assert lines[1].endswith("--header 'Authorization: Bearer ${OPENENV_GATEWAY_TOKEN}'\n")
    assert "--token-env OPENENV_GATEWAY_TOKEN" in lines[2]
    assert TOKEN not in "".join(lines)
    assert wait_until_gone(mark, 5) == []


def test_no_token_is_in_the_log_of_a_debugged_gateway(tokens: Path) -> None:
    mark = new_mark()
    command = [*GATEWAY, "--debug", "serve", "demo", "--port", "0", "--json", "--token-file", str(tokens)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **mark}) as process:
        assert process.stderr is not None
        lines: list[str] = []
        while '"serving"' not in (lines or [""])[-1]:
            lines.append(process.stderr.readline())
            assert lines[-1], lines
        url = json.loads(lines[-1])["url"]
        with connect(url.replace("http", "ws"), additional_headers={"Authorization": f"Bearer {TOKEN}"}, proxy=None):
            looked = run("--debug", "tools", url, "--token-env", "MY_TOKEN", mark={"MY_TOKEN": TOKEN})
        process.terminate()
        log = process.stderr.read()
        assert process.wait(10) == 0
    assert "authorization: Bearer ***" in log
    assert TOKEN not in log + looked.stderr + looked.stdout
    assert wait_until_gone(mark, 5) == []


def test_a_token_file_with_faults_reports_all_of_them_and_no_token(tmp_path: Path, tokens: Path) -> None:
    tokens.write_text(f"agent me {TOKEN}\nboss me {TOKEN}\nagent you {TOKEN}\nagent him 123\n")
    file = tmp_path / "gateway.toml"
    file.write_text('token_file = "tokens"\n[environments.demo]\nsource = "demo"\n')
    for command, code in ((["validate", str(file)], 1), (["serve", "--config", str(file), "--host", "0.0.0.0"], 2)):
        mark = new_mark()
        done = run(*command, mark=mark)
        assert (done.returncode, "3 faults" in done.stderr) == (code, True), done.stderr
        assert all(f"tokens:{line}: " in done.stderr for line in (2, 3, 4))
        assert TOKEN not in done.stderr and TOKEN not in done.stdout
        assert marked(mark) == []


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
        (["k8s:chess-env"], 2, "cannot launch k8s"),
        (["demo", "--port", "70000"], 2, "65535"),
        (["demo", "--host", "0.0.0.0"], 2, "--unprotected"),
        (["demo", "--host", "0.0.0.0"], 2, "--token-file FILE"),
        (["demo", "--config", "/nonexistent.toml"], 2, "/nonexistent.toml"),
        (["demo", "--token-file", "/nonexistent"], 2, "/nonexistent: cannot be read: No such file"),
        (["demo", "--host", "0.0.0.0", "--token-file", "/dev/null"], 2, "/dev/null: not a regular file"),
        (["http://127.0.0.1:9"], 1, "Cannot reach the environment server at http://127.0.0.1:9"),
        (["cmd:false {port}"], 1, "false"),
        (["cmd:/no/such/program {port}"], 1, "/no/such/program"),
        (["cmd:sleep 60?launch_timeout_s=0.3"], 1, "The command has no {port} in it"),
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


def test_the_event_loop_is_uvloops_where_that_is_installed_and_asyncios_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        assert type(runner.get_loop()).__module__.startswith("uvloop") is (importlib.util.find_spec("uvloop") is not None)
    monkeypatch.setitem(sys.modules, "uvloop", None)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        assert isinstance(runner.get_loop(), asyncio.SelectorEventLoop)
