"""The values of environment variables from the configuration are nowhere to be read: in no log, error, page, result or output,
also where a server prints them, where a launch fails, and in debug mode."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from testkit import images
from testkit.commands import GATEWAY, run
from testkit.leftovers import new_mark, wait_until_gone
from testkit.patience import patience
from testkit.servers import Server
from websockets.sync.client import connect

from openenv_client.errors import LaunchFailed
from openenv_client.providers import LocalDockerProvider

SECRET = "sk-live-5d41402abc4b2a76b9719d911017c592"
TALKATIVE = """
env; echo "my key is $GAME_KEY" >&2
[ ! -e {folder}/broken ] || exit 3
echo $$ > {folder}/pid
exec {python} -m openenv_gateway.demo --port $1
"""


def configured(folder: Path, command: str, variables: str = f'GAME_KEY = "{SECRET}"', **options: Any) -> Path:
    file = folder / "gateway.toml"
    told = "\n".join(f"{option} = {value}" for option, value in options.items())
    file.write_text(f"[environments.game]\nsource = 'cmd:{command}'\nenv_vars = {{ {variables} }}\n{told}\n")
    return file


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The configuration of a server that prints all its variables, and cannot start once there is a file `broken`."""
    script = tmp_path / "serve.sh"
    script.write_text(TALKATIVE.format(folder=tmp_path, python=sys.executable))
    return configured(tmp_path, f"sh {script} {{port}}")


@pytest.fixture
def gateway(file: Path) -> Iterator[Server]:
    mark = new_mark()
    command = [*GATEWAY, "--debug", "serve", "--config", str(file), "--port", "0", "--json"]
    server = Server(command, file.parent, mark)
    try:
        lines = server.wait_for_output('"serving"', 60).splitlines()
        server.base_url = next(json.loads(line)["url"] for line in lines if '"serving"' in line).partition("/envs/")[0]
        yield server
        os.kill(server.pid, signal.SIGTERM)
        assert server.wait(patience(20)) == 0
    finally:
        server.close()
    assert wait_until_gone(mark, 5) == []


def asked(http: httpx.Client, method: str, **params: Any) -> str:
    return http.post("/mcp?session=me", json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).text


def called(http: httpx.Client, tool: str, **arguments: Any) -> str:
    return asked(http, "tools/call", name=tool, arguments=arguments)


def everything_told(http: httpx.Client) -> list[str]:
    """What agents, operators and monitors can read."""
    told = [asked(http, method) for method in ("tools/list", "resources/list", "prompts/list", "server/discover", "no/such")]
    told += [called(http, "reset"), called(http, "step", cell=5), called(http, "step", cell="x"), called(http, "state")]
    told += [called(http, "no_such_tool"), asked(http, "prompts/get", name="play")]
    told += [asked(http, "resources/read", uri=f"openenv://game/{page}") for page in ("readme", "schema")]
    told += [http.get(page).text for page in ("/ready", "/health", "/metadata", "/schema", "/state", "/no/such")]
    with connect(f"{str(http.base_url).rstrip('/').replace('http', 'ws', 1)}/ws", proxy=None) as socket:
        socket.send('{"type": "reset", "data": {}}')
        told.append(str(socket.recv(timeout=30)))
    return told


def test_nothing_that_a_gateway_says_or_logs_has_a_value_not_even_when_its_server_prints_it_and_dies(
    gateway: Server, file: Path
) -> None:
    with httpx.Client(base_url=gateway.base_url, trust_env=False, timeout=30) as http:
        told = everything_told(http)
        (file.parent / "broken").touch()
        os.kill(int((file.parent / "pid").read_text()), signal.SIGKILL)
        deadline = time.monotonic() + patience(20)
        while "LAUNCH_FAILED" not in (failed := called(http, "reset")):
            assert time.monotonic() < deadline, failed
        told += [failed, *everything_told(http)]
        ready = http.get("/ready").json()
    assert "my key is ${GAME_KEY}" in failed, "the server's last lines are told, without the value"
    assert "${GAME_KEY}" in json.dumps(ready["details"])
    assert not [text for text in told if SECRET in text]
    assert SECRET not in gateway.log() and "my key is ${GAME_KEY}" in gateway.log()


@pytest.mark.parametrize("command", [("serve",), ("serve", "--json"), ("doctor",), ("doctor", "--json")])
def test_no_command_that_fails_shows_a_value(file: Path, command: tuple[str, ...]) -> None:
    (file.parent / "broken").touch()
    done = run("--debug", *command, "--port", "0", "--config", str(file))
    assert done.returncode == 1
    assert "my key is ${GAME_KEY}" in done.stdout + done.stderr
    assert SECRET not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("command", "variables", "options"),
    [
        ("sleep 60", f'GAME_KEY = "{SECRET}"', {"launch_timeout_s": 0.3}),
        ("/no/such/program {port}", f'GAME_KEY = "{SECRET}"', {}),
        ("true {port}", f'GAME_KEY = "{SECRET}"', {"cwd": '"/no/such/folder"'}),
        ("true {port}", f'GAME_KEY = "{SECRET}\\u0000"', {}),
        ("true {port}", f'"GAME=KEY" = "{SECRET}"', {}),
        ("true {port}", f'GAME_KEY = ["{SECRET}"]', {}),
        ("true {port}", f'GAME_KEY = {{ nested = "{SECRET}" }}', {}),
        ("true {port}", f'GAME_KEY = "{SECRET}', {}),
    ],
    ids=["hangs", "no program", "no folder", "zero byte", "no name", "list", "table", "no TOML"],
)
def test_no_fault_of_a_configuration_shows_a_value(
    tmp_path: Path, command: str, variables: str, options: dict[str, Any]
) -> None:
    file = configured(tmp_path, command, variables, **options)
    for words in (("validate", str(file)), ("--debug", "serve", "--port", "0", "--config", str(file))):
        done = run(*words)
        assert SECRET not in done.stdout + done.stderr, words
        assert words[0] == "validate" or done.returncode in (1, 2), done.stderr


@pytest.mark.docker
def test_a_container_that_prints_its_variables_and_dies_is_quoted_without_their_values(docker_engine: None) -> None:
    image = images.built("ARG PYTHON_IMAGE\nFROM ${PYTHON_IMAGE}\nCMD echo my key is $GAME_KEY; sleep 0.2; exit 3\n", [])
    provider = LocalDockerProvider(image, env_vars={"GAME_KEY": SECRET})
    try:
        with pytest.raises(LaunchFailed) as failure:
            provider.wait_for_ready(provider.start_container(), 30)
        assert "my key is ${GAME_KEY}" in str(failure.value)
        assert SECRET not in repr(failure.value) + str(failure.value) + failure.value.log + provider.logs(100)
    finally:
        provider.close()
