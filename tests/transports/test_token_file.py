"""openenv_gateway.transports.token_file: read at the start, and again when it changes."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from openenv_gateway.transports import token_file
from openenv_gateway.transports.token_file import BadTokenFile, TokenFile, read_tokens

BLUE, RED = "b" * 32, "r" * 32


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "tokens"
    path.write_text(f"agent blue {BLUE}\n")
    path.chmod(0o600)
    return path


class Clock:
    """Stands for time.monotonic where the file looks at it."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(token_file, "time", clock)
    return clock


def names(file: TokenFile) -> set[str]:
    return {principal.name for principal in file.tokens.principals.values()}


def rewritten(path: Path, text: str) -> None:
    """As editors do: a new file takes the old one's place."""
    new = path.with_name("new")
    new.write_text(text)
    new.chmod(0o600)
    os.replace(new, path)


def test_a_change_counts_at_the_next_look_a_second_later(path: Path, clock: Clock) -> None:
    file = TokenFile(path)
    rewritten(path, f"agent red {RED}\n")
    assert names(file) == {"blue"}
    clock.now += 0.9
    assert names(file) == {"blue"}
    clock.now += 0.2
    assert names(file) == {"red"}


def test_a_file_that_is_written_in_place_is_read_again(path: Path, clock: Clock) -> None:
    file = TokenFile(path)
    with path.open("a") as more:
        more.write(f"operator red {RED}\n")
    clock.now += 1
    assert names(file) == {"blue", "red"}


def test_a_file_that_did_not_change_is_not_read_again(path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    file = TokenFile(path)
    before = file.tokens
    clock.now += 1
    assert file.tokens is before


def test_faults_in_a_changed_file_keep_the_old_tokens_and_are_logged_once(
    path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    file = TokenFile(path)
    rewritten(path, f"agent red {RED}\nagent green {RED}\n")
    for _ in range(3):
        clock.now += 1
        assert names(file) == {"blue"}
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert f"{path}:2:" in record.getMessage() and "stay valid" in record.getMessage()
    assert RED not in record.getMessage()
    rewritten(path, f"agent red {RED}\n")
    clock.now += 1
    assert names(file) == {"red"}


def test_a_file_that_is_gone_keeps_the_old_tokens_and_is_logged_once(
    path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    file = TokenFile(path)
    path.unlink()
    for _ in range(3):
        clock.now += 1
        assert names(file) == {"blue"}
    (record,) = caplog.records
    assert "No such file" in record.getMessage()


def test_a_file_that_was_emptied_withdraws_every_token(path: Path, clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    file = TokenFile(path)
    rewritten(path, "# nobody any more\n")
    clock.now += 1
    assert names(file) == set()
    (record,) = caplog.records
    assert (record.levelno, "0 tokens" in record.getMessage()) == (logging.WARNING, True)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no token in it"),
        (b"# only a comment\n", "no token in it"),
        (b"agent blue \xff\xfe", "not UTF-8"),
        (b"#" * (2**20 + 1), "larger than 1048576 bytes"),
        (b"agent blue\nblue", ":1: expected scope, name and token, got 2 words"),
        (b"agent blue\nblue", ":2: expected scope, name and token, got 1 word"),
    ],
)
def test_a_file_that_is_no_good_is_told_at_the_start(path: Path, content: bytes, words: str) -> None:
    path.write_bytes(content)
    with pytest.raises(BadTokenFile) as caught:
        TokenFile(path)
    assert words in str(caught.value) and str(caught.value).startswith(f"token file {path}: ")
    assert "SCOPE NAME TOKEN" in caught.value.next_step


def test_what_is_no_file_is_told(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    no_files = {"nothing": "No such file", "": "not a regular file", "pipe": "not a regular file", "a\0b": "null"}
    for name, words in no_files.items():
        with pytest.raises(BadTokenFile, match=words):
            read_tokens(tmp_path / name)


def test_the_mark_that_some_editors_put_in_front_is_no_word(path: Path) -> None:
    path.write_bytes(b"\xef\xbb\xbf" + f"agent blue {BLUE}".encode())
    assert len(read_tokens(path)) == 1


@pytest.mark.parametrize(("mode", "is_told"), [(0o600, False), (0o640, False), (0o644, True), (0o602, True)])
def test_a_file_that_every_user_can_read_is_warned_of(
    path: Path, mode: int, is_told: bool, caplog: pytest.LogCaptureFixture
) -> None:
    path.chmod(mode)
    read_tokens(path)
    assert [f"chmod o= {path}" in record.getMessage() for record in caplog.records] == [True] * is_told
