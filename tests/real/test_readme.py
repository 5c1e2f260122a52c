"""What the README tells people to type, typed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from testkit.cache import alone
from testkit.commands import run
from testkit.leftovers import listens, new_mark, wait_until_gone

from openenv_gateway.cli.main import COMMANDS
from openenv_gateway.config.file import load_config
from openenv_gateway.config.spec import parse_spec
from openenv_gateway_schemas import load

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", ".*_cache", "__pycache__", "*.egg-info", ".coverage*")


def block(start: str, language: str) -> str:
    """The first code block of that language after `start`."""
    found = re.search(rf"{re.escape(start)}.*?```{language}\n(.*?)```", README, re.DOTALL)
    assert found is not None, f"README has no {language} block after {start}"
    return found[1]


@contextmanager
def fresh_demo(folder: Path, mark: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """Command 1 of the README in a folder that holds the repository's files and nothing else."""
    assert not listens("http://127.0.0.1:8700"), "somebody serves on the port that the README names: end that first"
    shutil.copytree(ROOT, folder, ignore=LEFT_OUT)
    environment = {**os.environ, **mark, "PIP_ROOT_USER_ACTION": "ignore"}
    setup, _, serve = block("<!-- demo -->", "sh").strip().rpartition(" && ")
    command = ["sh", "-ec", f"{setup} && exec {serve}"]  # exec: the process that is ended is the gateway, not its shell
    with subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.terminate()


def wait_until_served(process: subprocess.Popen[str], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert process.poll() is None, process.stderr.read() if process.stderr else ""
        if listens("http://127.0.0.1:8700"):
            return
        time.sleep(0.2)
    raise AssertionError(f"nothing is served on 8700 after {seconds} s")


@pytest.mark.real
def test_the_two_commands_of_the_first_section_serve_the_demo_and_play_a_whole_game(tmp_path: Path) -> None:
    mark = new_mark()
    with alone("port-8700"), fresh_demo(tmp_path / "clone", mark) as process:
        wait_until_served(process, 400)
        curl = subprocess.run(["sh", "-ec", block("<!-- curl -->", "sh")], capture_output=True, text=True, timeout=60)
        process.terminate()
        log = process.communicate(timeout=20)[1]
        assert curl.returncode == 0 and '"error"' not in curl.stdout, curl.stderr + curl.stdout + log
        answers: list[dict[str, Any]] = [json.loads(line)["result"] for line in curl.stdout.splitlines() if line]
    assert [tool["name"] for tool in answers[0]["tools"]] == ["reset", "step", "state"]
    plays = [answer["structuredContent"] for answer in answers[1:]]
    assert [play["done"] for play in plays] == [False, False, False, False, True]
    assert plays[-1]["reward"] == 1.0
    assert wait_until_gone(mark, 10) == []


def test_every_command_option_and_route_in_the_readme_exists() -> None:
    named = set(re.findall(r"^\| `([a-z]+) ", README, re.MULTILINE)) & set(COMMANDS)
    assert named == set(COMMANDS)
    help_text = run("serve", "--help").stdout + run("doctor", "--help").stdout
    for option in set(re.findall(r"`(--[a-z]+)", README)) - {"--json"}:
        assert option in help_text or option in run("call", "--help").stdout, option


def test_the_configuration_in_the_readme_is_valid(tmp_path: Path) -> None:
    text = block("### Options", "toml")
    file = tmp_path / "gateway.toml"
    file.write_text(text)
    assert [environment.name for environment in load_config(file).environments] == list(tomllib.loads(text)["environments"])


def test_every_option_stands_in_the_tables_of_the_readme_with_its_default() -> None:
    schema = load("config")
    parts = {**schema["properties"], **schema["$defs"]["environment"]["properties"]}
    told = set()
    for options, defaults in re.findall(r"^\| ((?:`[a-z_]+`(?:, )?)+) \| ([^|]*)\|", README.partition("### Options")[2], re.M):
        names = re.findall(r"`([a-z_]+)`", options)
        values = [value.strip(" `") for value in defaults.split(",")] if defaults.strip() else [""] * len(names)
        for name, value in zip(names, values, strict=True):
            default = parts[name].get("default")
            shown = "" if default in (None, [], {}) else str(default)
            shown = shown.lower() if isinstance(default, bool) else shown
            assert value == ("learnt" if name == "sessions_per_server" else shown), name
        told |= set(names)
    assert parts.keys() - {"source", "environments"} == told


def test_the_host_blocks_in_the_readme_are_what_the_command_prints(tmp_path: Path) -> None:
    printed = run("config", "claude-code", "http://127.0.0.1:8700/envs/chess/mcp").stdout
    assert printed == block("## Connect a host", "sh")
    entry = json.loads(block("## Connect a host", "json"))
    printed = json.loads(run("config", "claude-desktop", "demo").stdout)
    printed["mcpServers"]["demo"]["command"] = Path(printed["mcpServers"]["demo"]["command"]).name
    printed["mcpServers"]["demo"]["args"] = ["stdio", "demo"]
    assert printed == entry


def test_every_spec_in_the_readme_is_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("envs/echo_env", "envs/my_env"):
        Path(folder).mkdir(parents=True)
    commands = [line.partition("#")[0] for line in block("## Serve your environments", "sh").splitlines()]
    specs = [spec for line in commands for spec in shlex_split(line)[2:]]
    assert [parse_spec(spec).source.kind for spec in specs] == ["http", "cmd", "uv", "http", "docker", "hf"]


def shlex_split(line: str) -> list[str]:
    done = subprocess.run(["sh", "-c", f"printf '%s\\n' {line}"], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()
