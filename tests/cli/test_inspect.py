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


def test_config_prints_a_block_whose_command_works_from_any_folder() -> None:
    done = run("config", "claude-desktop", "demo")
    entry = json.loads(done.stdout)["mcpServers"]["demo"]
    assert Path(entry["command"]).is_absolute()
    assert entry["args"] == ["stdio", "demo=demo"]
    assert "claude_desktop_config.json" in done.stderr
    printed = run("config", "codex", "http://127.0.0.1:8700/mcp", "--token-env", "CHESS_TOKEN").stdout
    assert printed.endswith('bearer_token_env_var = "CHESS_TOKEN"\n')
    assert run("config", "claude-code").stdout == "claude mcp add --transport http openenv http://127.0.0.1:8700/mcp\n"
