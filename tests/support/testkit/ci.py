"""The rule of a complete run: with OPENENV_GATEWAY_CI=1 a skipped test fails the run, and the summary says what ran.

A plugin of hooks, registered by `tests/conftest.py`.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from pathlib import PurePosixPath
from typing import Final

import pytest
from _pytest.terminal import TerminalReporter

OUTCOMES: Final = ("passed", "failed", "error", "skipped", "xfailed", "xpassed")


def complete_run() -> bool:
    """Whether this run must skip nothing: the variable OPENENV_GATEWAY_CI is 1."""
    return os.environ.get("OPENENV_GATEWAY_CI") == "1"


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Turn a run that skipped something into a failed one."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if complete_run() and exitstatus == pytest.ExitCode.OK and reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    """Print what tests measured and recorded (`record_property`), from whichever process they ran in. In a complete run also,
    per folder of tests, how many had which outcome, and of each skip that it is a failure, and its reason."""
    measured = [told for report in terminalreporter.getreports("passed") for told in report.user_properties]
    if measured:
        terminalreporter.section("measured")
    for name, value in measured:
        terminalreporter.write_line(f"{name}: {value}")
    if not complete_run():
        return
    terminalreporter.section("what ran")
    for folder, counts in sorted(_by_folder(terminalreporter).items()):
        told = ", ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOMES if counts[outcome])
        terminalreporter.write_line(f"{folder:<24} {told}")
    for report in terminalreporter.stats.get("skipped", ()):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        terminalreporter.write_line(f"SKIPPED, which fails a complete run: {report.nodeid}: {reason}", red=True)


def _by_folder(reporter: TerminalReporter) -> dict[str, Counter[str]]:
    folders: dict[str, Counter[str]] = defaultdict(Counter)
    for outcome in OUTCOMES:
        for report in reporter.stats.get(outcome, ()):
            folders[str(PurePosixPath(report.nodeid.partition("::")[0]).parent)][outcome] += 1
    return folders
