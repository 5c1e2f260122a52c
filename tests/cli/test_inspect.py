"""`tools`, `call` and `config` from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image
from testkit.commands import run, serving
from testkit.leftovers import new_mark, wait_until_gone


def test_tools_shows_what_an_agent_sees() -> None:
    done = run("tools", "demo")
    assert done.returncode == 0
    assert "step(cell: integer)" in done.stdout
    listed = json.loads(run("tools", "demo", "--json").stdout)
    assert [tool["name"] for tool in listed] == ["reset", "step", "state"]
    assert all(tool["inputSchema"]["type"] == "object" for tool in listed)


def test_tools_and_call_take_the_url_of_a_running_gateway() -> None:
    mark = new_mark()
    with serving("demo", mark=mark) as (_, url):
        assert run("tools", url).stdout.startswith("reset(")
        called = run("call", f"{url}?session=me", "step", '{"cell": 5}')
        assert (called.returncode, json.loads(called.stdout)["done"]) == (0, False)
        assert run("call", url, "nonsense").returncode == 1
    assert wait_until_gone(mark, 10) == []


def test_call_shows_the_content_and_saves_pictures(tmp_path: Path) -> None:
    done = run("call", "demo", "step", '{"cell": 5}', "-o", str(tmp_path))
    assert done.returncode == 0
    observation = json.loads(done.stdout)["observation"]
    assert 5 not in observation["legal_moves"]
    (picture,) = tmp_path.iterdir()
    with Image.open(picture) as image:
        assert image.format == "PNG"
    assert "reward: 0.0  done: False" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["call", "demo", "stepp"], 1, "Did you mean step?"),
        (["call", "demo", "step", '{"cell": "x"}'], 1, "INVALID_ARGUMENTS"),
        (["call", "demo", "step", "{cell: 5}"], 2, "not JSON"),
        (["call", "demo", "step", "[5]"], 2, "JSON object"),
        (["call", "http://127.0.0.1:9/mcp", "step"], 1, "http://127.0.0.1:9/mcp"),
        (["tools", "http://127.0.0.1:9"], 1, "Cannot reach"),
        (["tools", "chess=http://127.0.0.1:9"], 1, "(environment chess: http://127.0.0.1:9)"),
        (["call", "demo", "reset", "-o", "/etc/passwd/x"], 2, "Cannot save into /etc/passwd/x"),
        (["tools", "bogus"], 2, "unknown source"),
        (["config", "emacs"], 2, "claude-code"),
        (["config", "claude-desktop", "http://127.0.0.1:8700/mcp"], 2, "commands only"),
        (["config", "cursor", "demo", "--token-env", "TOKEN"], 2, "goes with the URL of a gateway"),
        (["config", "cursor", "http://127.0.0.1:8700/mcp", "--token-env", "$TOKEN"], 2, "environment variable"),
        (["tools", "http://127.0.0.1:9/mcp", "--token-env", "NOT_SET"], 2, "NOT_SET"),
        (["config", "cursor", "demo", "--name", "a b"], 2, "a b"),
        (["tools", "demo", "--token-env", "TOKEN"], 2, "a SPEC wants no token"),
        (["call", "demo", "step", "--token-env", "TOKEN"], 2, "a SPEC wants no token"),
        (["tools", "http://127.0.0.1:9/mcp", "--exposure", "agent"], 2, "is for who serves it to say"),
        (["validate", "/nonexistent.toml"], 1, "/nonexistent.toml"),
        (["nonsense"], 2, "nonsense"),
    ],
)
def test_bad_input_is_told(arguments: list[str], code: int, words: str) -> None:
    mark = new_mark()
    done = run(*arguments, mark=mark)
    assert done.returncode == code, done.stderr
    assert words in done.stderr + done.stdout
    assert "Traceback" not in done.stderr
    assert wait_until_gone(mark, 5) == []


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["serve", "bogus", "--json"], (2, "CONFIG_ERROR", 'unknown source "bogus"')),
        (["serve", "http://127.0.0.1:9", "--json"], (1, "SERVER_UNREACHABLE", "Cannot reach")),
        (["serve", "demo", "--port", "x", "--json"], (2, "USAGE", "--port")),
        (["tools", "http://127.0.0.1:9", "--json"], (1, "SERVER_UNREACHABLE", "Cannot reach")),
    ],
)
def test_who_asks_for_json_gets_errors_as_json_too(arguments: list[str], expected: tuple[int, str, str]) -> None:
    done = run(*arguments)
    error = json.loads(done.stderr)
    assert (done.returncode, error["event"], error["code"]) == (expected[0], "error", expected[1])
    assert expected[2] in error["message"] and error["next_step"]


def test_the_base_url_of_a_gateway_is_not_taken_for_an_environment_server() -> None:
    with serving("demo", "other=demo", mark=new_mark()) as (_, url):
        base = url.removesuffix("/envs/demo/mcp")
        for arguments in (["tools", base], ["call", f"a={base}", "step"], ["config", "cursor", f"{base}/?step_timeout_s=5"]):
            done = run(*arguments)
            assert done.returncode == 2
            assert f"{base}/envs/demo/mcp, {base}/envs/other/mcp" in done.stderr


def test_a_wrong_token_is_told_apart_from_a_missing_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WRONG", "w" * 32)
    tokens = tmp_path / "tokens"
    tokens.touch(0o600)
    tokens.write_text(f"agent blue {'b' * 32}\n")
    with serving("demo", "--token-file", str(tokens), mark=new_mark()) as (_, url):
        assert "holds your token with --token-env" in run("tools", url).stderr
        wrong = run("tools", url, "--token-env", "WRONG").stderr
    assert "unknown or was withdrawn" in wrong and "Check the variable" in wrong
    assert "w" * 32 not in wrong


def test_validate_says_which_valid_sources_cannot_be_served_yet(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text('[environments.cluster]\nsource = "k8s:chess-env"\n[environments.game]\nsource = "demo"\n')
    done = run("validate", str(file))
    assert done.returncode == 1
    assert "is valid. Environments: cluster, game" in done.stdout
    assert 'environment "cluster": this version cannot launch k8s:' in done.stderr


def test_config_prints_a_block_whose_command_works_from_any_folder() -> None:
    done = run("config", "claude-desktop", "demo")
    entry = json.loads(done.stdout)["mcpServers"]["demo"]
    assert Path(entry["command"]).is_absolute()
    assert entry["args"] == ["stdio", "demo=demo"]
    assert "claude_desktop_config.json" in done.stderr
    printed = run("config", "codex", "http://127.0.0.1:8700/mcp", "--token-env", "CHESS_TOKEN").stdout
    assert printed.endswith('bearer_token_env_var = "CHESS_TOKEN"\n')
    assert run("config", "claude-code").stdout == "claude mcp add --transport http openenv http://127.0.0.1:8700/mcp\n"
