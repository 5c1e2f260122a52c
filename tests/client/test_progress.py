"""progress.py: what a terminal shows. That reports come at all is in test_contract_owned.py."""

from __future__ import annotations

import io
import sys

import pytest

from openenv_client.progress import Progress, Reporter, terminal_line


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_has_one_line_that_appears_when_it_takes_long_and_goes_when_it_is_over() -> None:
    stream = Terminal()
    report = terminal_line(stream)
    assert report is not None
    for progress in (
        Progress("UVProvider", "starting", 0.2),
        Progress("UVProvider", "starting", 3.4, "Installed 40 packages"),
        Progress("UVProvider", "ready", 5.0),
    ):
        report(progress)
    assert stream.getvalue() == "\r\x1b[KUVProvider: starting, 3 s (Installed 40 packages)\r\x1b[K"


def test_a_long_line_of_a_servers_log_does_not_break_the_terminals() -> None:
    stream = Terminal()
    report = terminal_line(stream)
    assert report is not None
    report(Progress("P", "starting", 3.0, "x" * 1000))
    assert len(stream.getvalue()) <= 110


def test_where_nobody_looks_nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(sys, "ps1", raising=False)
    assert terminal_line(io.StringIO()) is None


def test_an_interactive_python_is_a_terminal_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    assert terminal_line(io.StringIO()) is not None


async def test_a_report_has_the_last_line_of_a_provider_that_tells() -> None:
    class Chatty:
        def poll(self) -> int | None:
            return None

        def logs(self, tail: int = 50) -> str:
            return "Downloading numpy\n"

    heard: list[Progress] = []
    async with Reporter(heard.append, Chatty()):
        pass
    assert [(each.what, each.stage, each.detail) for each in heard] == [
        ("Chatty", "starting", "Downloading numpy"),
        ("Chatty", "ready", "Downloading numpy"),
    ]
