"""openenv_gateway.config.sources: how each kind of source is written, named, and refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openenv_gateway.config.sources import ALL_FORMS, BadSource, default_name, hidden_credentials, parse_source
from openenv_gateway.config.spec import NAME
from openenv_gateway.settings import Source

HERE = Path("/nowhere")


def refusal(text: str, folder: Path = HERE) -> str:
    with pytest.raises(BadSource) as caught:
        parse_source(text, folder)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "source", "name"),
    [
        ("demo", Source("demo"), "demo"),
        ("http://localhost:8000", Source("http", "http://localhost:8000"), "localhost-8000"),
        ("http://127.0.0.1:8000/", Source("http", "http://127.0.0.1:8000"), "127-0-0-1-8000"),
        ("HTTPS://Example.org/envs/chess/", Source("http", "https://Example.org/envs/chess"), "example-org-envs-chess"),
        ("http://[::1]:80", Source("http", "http://[::1]:80"), "1-80"),
        ("cmd:uvicorn app:app --port {port}", Source("cmd", "uvicorn app:app --port {port}"), "uvicorn"),
        ("cmd:'/a b/run.sh' {port}", Source("cmd", "'/a b/run.sh' {port}"), "run"),
        ("uv:git+https://h/a/echo.git@v1", Source("uv", "git+https://h/a/echo.git@v1"), "echo"),
        ("uv:git+https://h/a/b#subdirectory=e/maze_env", Source("uv", "git+https://h/a/b#subdirectory=e/maze_env"), "maze_env"),
        ("docker:chess-env:latest", Source("docker", "chess-env:latest"), "chess-env"),
        ("docker:reg.io:5000/a/chess_env@sha256:0a", Source("docker", "reg.io:5000/a/chess_env@sha256:0a"), "chess_env"),
        ("hf:openenv/Echo.Env", Source("hf", "openenv/Echo.Env"), "echo-env"),
        ("swarm:echo-env", Source("swarm", "echo-env"), "echo-env"),
        ("k8s:echo-env:1", Source("k8s", "echo-env:1"), "echo-env"),
        ("py:my.pack:Provider", Source("py", "my.pack:Provider"), "provider"),
    ],
)  # fmt: skip
def test_each_kind_is_read_and_named_after_itself(text: str, source: Source, name: str) -> None:
    read = parse_source(text, HERE)
    assert (read, default_name(read)) == (source, name)


def test_a_command_is_named_after_its_folder_if_it_has_one() -> None:
    assert default_name(Source("cmd", "python -m server", cwd=Path("/envs/Chess Env"))) == "chess-env"


def test_a_folder_with_a_manifest_is_a_uv_source(tmp_path: Path) -> None:
    (tmp_path / "echo_env").mkdir()
    (tmp_path / "echo_env" / "openenv.yaml").touch()
    expected = Source("uv", str(tmp_path / "echo_env"))
    assert parse_source("echo_env", tmp_path) == parse_source("uv:echo_env", tmp_path) == expected
    assert default_name(expected) == "echo_env"


def test_a_folder_without_a_manifest_needs_the_prefix(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    assert refusal("plain", tmp_path) == (
        f"the folder {tmp_path}/plain has no openenv.yaml; write uv:plain if it is an environment all the same"
    )
    assert parse_source("uv:plain", tmp_path) == Source("uv", str(tmp_path / "plain"))


def test_a_folder_that_is_not_there_is_told_at_once(tmp_path: Path) -> None:
    assert refusal("uv:nope", tmp_path) == f"there is no folder {tmp_path}/nope"


def test_an_unknown_source_lists_every_form() -> None:
    assert refusal("nonsense") == f'unknown source "nonsense"; known forms: {ALL_FORMS}'
    for form in ("demo", "http://", "cmd:", "uv:", "docker:", "hf:", "swarm:", "k8s:", "py:", "openenv.yaml"):
        assert form in ALL_FORMS


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("dokcer:x", 'did you mean "docker"?'),
        ("dmo", 'did you mean "demo"?'),
        ("localhost:8000", 'did you mean "http://localhost:8000"?'),
        ("ws://h:1/ws", "give the server's http:// URL, /ws is put behind it"),
    ],
)
def test_an_unknown_source_that_resembles_a_known_one_gets_a_hint(text: str, hint: str) -> None:
    assert f"; {hint}; known forms" in refusal(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("docker:", "nothing follows docker: (it is written docker:IMAGE)"),
        ("docker:a b", '"a b" is not the name of an image'),
        ("hf:space", '"space" is not a Space (ORG/SPACE)'),
        ("py:module", '"module" is not a class (MODULE:CLASS)'),
        ("uv:git+host", "a git source is written uv:git+https://HOST/REPOSITORY"),
        ("cmd:run 'x", "the command cannot be split into words: No closing quotation"),
        ("http://", "http:// is not the URL of a server (it is written http://HOST:PORT)"),
        ("http://h:99999", "http://h:99999 is not a URL: Port out of range 0-65535"),
        ("http://h:0", "http://h:0 is not the URL of a server (it is written http://HOST:PORT)"),
        ("http://h/?a=b", "a server's URL has no query and no fragment; paths such as /ws are put behind it"),
        ("http://h#x", "a server's URL has no query and no fragment; paths such as /ws are put behind it"),
    ],
)
def test_a_malformed_source_says_why_and_how_it_is_written(text: str, why: str) -> None:
    assert refusal(text) == why


@pytest.mark.parametrize("text", ["http://user:s3cret@h:1", "https://s3cret@h", "http://user:s3cret@h:99999", "wss://a:s3cret@h"])
def test_credentials_in_a_url_are_refused_and_not_repeated(text: str) -> None:
    assert "s3cret" not in refusal(text)
    assert "s3cret" not in hidden_credentials(f"x={text}/path")


@given(st.text(max_size=20), st.sampled_from(["", "demo", "http://", "cmd:", "uv:git+https://", "docker:", "hf:", "py:"]))
def test_any_text_is_a_source_with_a_name_fit_for_a_url_or_is_refused(tail: str, head: str) -> None:
    try:
        source = parse_source(head + tail, HERE)
    except BadSource as error:
        assert str(error)
    else:
        assert NAME.fullmatch(default_name(source))
