"""openenv_gateway.hosts.blocks: each block is what its host reads; scripts are run against a real gateway."""

from __future__ import annotations

import ast
import json
import os
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openenv_gateway.errors import ConfigError
from openenv_gateway.hosts.blocks import HOSTS, NAME, PLACES, block

URL = "http://127.0.0.1:8700/envs/chess/mcp"
COMMAND = ["openenv-gateway", "stdio", "cmd:run 'a b' --port {port}"]
GATEWAY = str(Path(sys.executable).with_name("openenv-gateway"))
DEADLINE_S = 30.0
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
NAMES = st.from_regex(NAME, fullmatch=True)
COMMANDS = st.lists(TEXTS, min_size=1, max_size=4)


def refusal(host: str, **way: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        block(host, way.pop("name", "chess"), **way)
    [fault] = caught.value.faults
    return fault


def test_every_host_has_a_place_for_its_block() -> None:
    assert set(PLACES) == set(HOSTS)


def test_claude_code_gets_a_command_for_the_shell() -> None:
    assert block("claude-code", "chess", url=URL) == f"claude mcp add --transport http chess {URL}"
    assert block("claude-code", "chess", command=COMMAND) == "claude mcp add chess -- " + shlex.join(COMMAND)


def test_claude_desktop_gets_a_command_entry() -> None:
    expected = {"mcpServers": {"chess": {"command": "openenv-gateway", "args": ["stdio", COMMAND[2]]}}}
    assert json.loads(block("claude-desktop", "chess", command=COMMAND)) == expected


def test_cursor_gets_a_url_or_a_command() -> None:
    assert json.loads(block("cursor", "chess", url=URL)) == {"mcpServers": {"chess": {"url": URL}}}
    assert json.loads(block("cursor", "chess", command=COMMAND)) == {
        "mcpServers": {"chess": {"command": COMMAND[0], "args": COMMAND[1:]}}
    }


def test_vscode_has_its_own_root_key_and_a_type() -> None:
    assert json.loads(block("vscode", "chess", url=URL)) == {"servers": {"chess": {"type": "http", "url": URL}}}
    assert json.loads(block("vscode", "chess", command=COMMAND)) == {
        "servers": {"chess": {"type": "stdio", "command": COMMAND[0], "args": COMMAND[1:]}}
    }


def test_codex_gets_toml() -> None:
    assert tomllib.loads(block("codex", "chess", url=URL)) == {"mcp_servers": {"chess": {"url": URL}}}
    assert tomllib.loads(block("codex", "chess", command=COMMAND)) == {
        "mcp_servers": {"chess": {"command": COMMAND[0], "args": COMMAND[1:]}}
    }


def test_a_token_is_named_and_each_host_replaces_the_name_in_its_own_way() -> None:
    blocks = {host: block(host, "chess", url=URL, token_variable="CHESS_TOKEN") for host in HOSTS if host != "claude-desktop"}
    assert shlex.split(blocks["claude-code"]) == [
        "claude", "mcp", "add", "--scope", "project", "--transport", "http", "chess", URL,
        "--header", "Authorization: Bearer ${CHESS_TOKEN}",
    ]  # fmt: skip
    assert "'Authorization: Bearer ${CHESS_TOKEN}'" in blocks["claude-code"]  # no shell puts the token into the file
    assert json.loads(blocks["cursor"]) == {
        "mcpServers": {"chess": {"url": URL, "headers": {"Authorization": "Bearer ${env:CHESS_TOKEN}"}}}
    }
    assert json.loads(blocks["vscode"]) == {
        "inputs": [{"type": "promptString", "id": "chess-token", "description": "Token for chess", "password": True}],
        "servers": {"chess": {"type": "http", "url": URL, "headers": {"Authorization": "Bearer ${input:chess-token}"}}},
    }
    assert tomllib.loads(blocks["codex"]) == {"mcp_servers": {"chess": {"url": URL, "bearer_token_env_var": "CHESS_TOKEN"}}}
    assert blocks["curl"].count('-H "Authorization: Bearer $CHESS_TOKEN" ') == 5 == blocks["curl"].count("curl -s")
    assert "os.environ['CHESS_TOKEN']" in blocks["python"]


@given(NAMES, COMMANDS)
def test_any_command_survives_every_syntax(name: str, command: list[str]) -> None:
    expected = {"command": command[0], "args": command[1:]}
    assert json.loads(block("claude-desktop", name, command=command))["mcpServers"] == {name: expected}
    assert json.loads(block("vscode", name, command=command))["servers"] == {name: {"type": "stdio", **expected}}
    assert tomllib.loads(block("codex", name, command=command))["mcp_servers"] == {name: expected}
    assert shlex.split(block("claude-code", name, command=command)) == ["claude", "mcp", "add", name, "--", *command]
    calls = [node for node in ast.walk(ast.parse(block("python", name, command=command))) if isinstance(node, ast.Call)]
    [launch] = [call for call in calls if ast.unparse(call.func) == "StdioServerParameters"]
    assert {word.arg: ast.literal_eval(word.value) for word in launch.keywords} == expected


@given(TEXTS)
def test_any_url_is_one_word_for_the_shell_and_one_string_in_python(tail: str) -> None:
    url = URL + tail
    words = shlex.split(block("curl", "chess", url=url), comments=True)
    named = f"{url}{'&' if '?' in url else '?'}session=me"
    assert words.count(named) == 2 and words.count(url) == 3
    assert ast.literal_eval(f"[{block('python', 'chess', url=url).split('Client(')[1].split(') as client')[0]}]") == [url]


def test_the_curl_block_sends_valid_json_rpc() -> None:
    words = shlex.split(block("curl", "chess", url=URL, opening="observe"), comments=True)
    bodies = [json.loads(word) for word in words if word.startswith("{")]
    assert [body["method"] for body in bodies] == [
        "tools/call", "tools/list", "initialize", "notifications/initialized", "tools/call",
    ]  # fmt: skip
    assert [body["params"]["name"] for body in bodies if body["method"] == "tools/call"] == ["observe", "observe"]


@pytest.mark.parametrize(
    ("host", "way", "reason"),
    [
        ("claude-desktop", {"url": URL}, "takes commands only, no URLs: use openenv-gateway config claude-desktop SPEC"),
        ("curl", {"command": COMMAND}, "speaks HTTP only: serve the environment (openenv-gateway serve SPEC)"),
        ("emacs", {"url": URL}, 'unknown host "emacs"; known are claude-code, claude-desktop, cursor'),
        ("cursor", {}, "needs either the URL of a served environment or a command to launch, not both"),
        ("cursor", {"url": URL, "command": COMMAND}, "needs either the URL of a served environment or a command"),
        ("cursor", {"url": URL, "name": "a b"}, 'the name "a b" must be 1 to 64 letters, digits'),
        ("cursor", {"url": URL, "token_variable": "A B"}, "stands in an environment variable: letters, digits, underscores"),
        ("cursor", {"url": URL, "token_variable": "$(id)"}, "stands in an environment variable"),
        ("cursor", {"command": COMMAND, "token_variable": "TOKEN"}, "a token goes with a URL"),
        ("claude-code", {"url": URL, "name": "-x"}, 'the name "-x" must be 1 to 64 letters, digits'),
    ],
)
def test_what_cannot_be_says_why_and_what_works(host: str, way: dict[str, Any], reason: str) -> None:
    assert reason in refusal(host, **way)


@contextmanager
def gateway(*options: str) -> Iterator[str]:
    """A real gateway that serves the demo, as the MCP URL."""
    process = subprocess.Popen([GATEWAY, "serve", "demo", "--port", "0", "--json", *options], stderr=subprocess.PIPE, text=True)
    with process:
        assert process.stderr is not None
        try:
            yield json.loads(process.stderr.readline())["url"]
        finally:
            process.terminate()
        assert process.wait(DEADLINE_S) == 0


@pytest.fixture(scope="module")
def served() -> Iterator[str]:
    """The MCP URL of a real gateway."""
    with gateway() as url:
        yield url


TOKEN = "t0" * 16


@pytest.fixture(scope="module")
def protected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The same of one that wants TOKEN."""
    tokens = tmp_path_factory.mktemp("protected") / "tokens"
    tokens.touch(0o600)
    tokens.write_text(f"agent me {TOKEN}\n")
    with gateway("--token-file", str(tokens)) as url:
        yield url


def run(*command: str, **variables: str) -> str:
    environment = {**os.environ, **variables}
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_curl_block_runs_as_pasted_and_each_way_opens_an_episode(served: str) -> None:
    named, listed, initialized = (json.loads(line) for line in run("sh", "-c", block("curl", "demo", url=served)).splitlines())
    assert {tool["name"] for tool in listed["result"]["tools"]} == {"reset", "step", "state"}
    for answer in (named, initialized):
        assert not answer["result"].get("isError")
        assert answer["result"]["structuredContent"]["observation"]["legal_moves"] == list(range(1, 10))


@pytest.mark.parametrize("way", ["url", "command"])
def test_the_python_block_runs_as_pasted(served: str, way: str, tmp_path: Path) -> None:
    script = tmp_path / "play.py"
    target: dict[str, Any] = {"url": served} if way == "url" else {"command": [GATEWAY, "stdio", "demo"]}
    script.write_text(block("python", "demo", **target), encoding="utf-8")
    *tools, result = run(sys.executable, str(script)).splitlines()
    assert [line.split()[0] for line in tools] == ["reset", "step", "state"]
    assert json.loads(result)["observation"]["legal_moves"] == list(range(1, 10))


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_curl_block_with_a_token_runs_as_pasted(protected: str) -> None:
    text = block("curl", "demo", url=protected, token_variable="DEMO_TOKEN")
    named, listed, initialized = (json.loads(line) for line in run("sh", "-c", text, DEMO_TOKEN=TOKEN).splitlines())
    assert {tool["name"] for tool in listed["result"]["tools"]} == {"reset", "step", "state"}
    for answer in (named, initialized):
        assert not answer["result"].get("isError")


def test_the_python_block_with_a_token_runs_as_pasted(protected: str, tmp_path: Path) -> None:
    script = tmp_path / "play.py"
    script.write_text(block("python", "demo", url=protected, token_variable="DEMO_TOKEN"), encoding="utf-8")
    *tools, result = run(sys.executable, str(script), DEMO_TOKEN=TOKEN).splitlines()
    assert [line.split()[0] for line in tools] == ["reset", "step", "state"]
    assert json.loads(result)["observation"]["legal_moves"] == list(range(1, 10))
