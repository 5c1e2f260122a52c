"""testkit.suites: what of a suite's results is unmet, and whether that was expected."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from testkit import node, suites
from testkit.suites import Difference, SuiteFailed, Verdict

PING = Verdict(met=1, unmet={})
LOGGING = Verdict(met=1, unmet={"level": "FAILURE: no such method", "filter": "SKIPPED: null"})


def a_list(folder: Path, *entries: str) -> Path:
    file = folder / "expected.yml"
    file.write_text("\n".join(["# about this list", "server:", "  # a section", *entries, ""]), "utf-8")
    return file


def a_suite(folder: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    """A program in place of the suite, run by a shell in place of node."""
    script = folder / "suite.sh"
    script.write_text(program, "utf-8")
    monkeypatch.setattr(node, "node", lambda: Path("/bin/sh"))
    monkeypatch.setattr(node, "suite", lambda alias: script)


def a_run(folder: Path, monkeypatch: pytest.MonkeyPatch, **scenarios: list[tuple[str, str]]) -> dict[str, Verdict]:
    """The verdicts of a suite that writes these checks, each an id and a status."""
    a_suite(folder, monkeypatch, "echo '=== SUMMARY ==='")
    results = folder / "results"
    for name, checks in scenarios.items():
        place = results / f"server-{name}-2026-11-29T17-16-51-359Z"
        place.mkdir(parents=True)
        written = [{"id": identity, "status": status, "details": {"seen": 1}} for identity, status in checks]
        (place / "checks.json").write_text(json.dumps(written), "utf-8")
    return suites.run("any", "http://127.0.0.1:9/mcp", results)


def test_a_check_that_failed_that_is_warned_of_or_that_was_skipped_is_unmet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = [("a", "SUCCESS"), ("b", "INFO"), ("c", "FAILURE"), ("d", "WARNING"), ("e", "SKIPPED")]
    assert a_run(tmp_path, monkeypatch, ping=checks) == {
        "ping": Verdict(1, {"c": 'FAILURE: {"seen": 1}', "d": 'WARNING: {"seen": 1}', "e": 'SKIPPED: {"seen": 1}'})
    }


def test_a_scenario_that_checked_nothing_is_unmet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    verdicts = a_run(tmp_path, monkeypatch, polling=[("a", "INFO")])
    assert list(verdicts["polling"].unmet) == [suites.NOTHING]


def test_a_suite_that_does_not_come_to_its_summary_is_an_error_that_shows_what_it_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_suite(tmp_path, monkeypatch, "echo 'cannot find a module'; exit 0")
    with pytest.raises(SuiteFailed, match="cannot find a module"):
        suites.run("any", "http://127.0.0.1:9/mcp", tmp_path)


def test_a_suite_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a_suite(tmp_path, monkeypatch, "echo started; sleep 600")
    monkeypatch.setattr(suites, "RUN_TIMEOUT_S", 0.5)
    with pytest.raises(SuiteFailed, match=r"did not end within 0\.5 s:\nstarted"):
        suites.run("any", "http://127.0.0.1:9/mcp", tmp_path)


def test_what_is_unmet_and_listed_is_no_difference_whether_listed_whole_or_check_by_check() -> None:
    verdicts = {"ping": PING, "logging": LOGGING}
    same = Difference(unexpected={}, stale=())
    assert suites.compare(verdicts, {"logging": "not built"}) == same
    assert suites.compare(verdicts, {"logging:level": "not built", "logging:filter": "not built"}) == same


def test_an_unlisted_unmet_check_and_a_listed_met_one_are_told() -> None:
    verdicts = {"ping": PING, "logging": LOGGING}
    entries = {"ping": "not built", "logging:level": "not built", "logging:other": "not built", "gone": "not built"}
    assert suites.compare(verdicts, entries) == Difference(
        unexpected={"logging:filter": "SKIPPED: null"}, stale=("ping", "logging:other", "gone")
    )


def test_a_list_gives_each_entry_its_reason(tmp_path: Path) -> None:
    file = a_list(tmp_path, "  - ping  # not built", "", "  - logging:level  # the wire: no logs")
    assert suites.expected(file) == {"ping": "not built", "logging:level": "the wire: no logs"}


@pytest.mark.parametrize("entry", ["  - ping", "  - ping  #", "- ping  # no indent", "  ping: x", "  - logging: level  # no"])
def test_an_entry_without_a_reason_or_of_another_form_is_an_error_that_names_the_line(tmp_path: Path, entry: str) -> None:
    with pytest.raises(ValueError, match=r"expected\.yml:4 must be"):
        suites.expected(a_list(tmp_path, entry))


def test_an_entry_that_comes_twice_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"expected\.yml:5 must be"):
        suites.expected(a_list(tmp_path, "  - ping  # not built", "  - ping  # again"))
