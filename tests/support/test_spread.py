"""testkit.spread: what a run in several processes keeps together, and in which order."""

from __future__ import annotations

import os

import pytest
from testkit import spread

MARKS = "[pytest]\nmarkers = real\n"
WHO = """
    import os

    import pytest

    @pytest.mark.parametrize("number", range(3))
    def test_says_who_runs_it(number):
        with open("{file}", "a") as told:
            print("{name}", os.environ.get("PYTEST_XDIST_WORKER", "alone"), number, file=told)
"""


def run(pytester: pytest.Pytester, *options: str) -> list[list[str]]:
    """File, process and number of each test, as they ran: three files of three tests, of which the last has a `real` one."""
    told = pytester.path / "told"
    for name in ("test_a", "test_b", "test_c"):
        pytester.makepyfile(**{name: WHO.format(name=name, file=told)})
    with (pytester.path / "test_c.py").open("a") as file:
        file.write("\n@pytest.mark.real\ndef test_plays():\n    pass\n")
    pytester.makeini(MARKS)
    result = pytester.runpytest_inprocess("-p", "testkit.spread", "-p", "no:cacheprovider", "-p", "no:asyncio", *options)
    result.assert_outcomes(passed=10)
    return [line.split() for line in told.read_text().splitlines()]


def test_a_files_tests_run_in_one_process_in_their_order(pytester: pytest.Pytester) -> None:
    ran = run(pytester, "-n2")
    assert {process for _, process, _ in ran} == {"gw0", "gw1"}
    for name in ("test_a", "test_b", "test_c"):
        assert len({process for file, process, _ in ran if file == name}) == 1
        assert [number for file, _, number in ran if file == name] == ["0", "1", "2"]


def test_files_that_play_with_real_peers_come_first(pytester: pytest.Pytester) -> None:
    assert [file for file, _, _ in run(pytester, "-n1")] == ["test_c"] * 3 + ["test_a"] * 3 + ["test_b"] * 3


def test_without_n_files_run_here_as_they_are_found(pytester: pytest.Pytester) -> None:
    ran = run(pytester)
    assert {process for _, process, _ in ran} == {os.environ.get("PYTEST_XDIST_WORKER", "alone")}
    assert [file for file, _, _ in ran] == ["test_a"] * 3 + ["test_b"] * 3 + ["test_c"] * 3


def test_an_explicit_distribution_is_left_as_it_is(pytester: pytest.Pytester) -> None:
    ran = run(pytester, "-n2", "--dist", "each", "--maxprocesses", "1")
    assert len(ran) == 9


@pytest.mark.parametrize(("cpus", "processes"), [(1, 2), (2, 4), (64, 8)])
def test_auto_is_two_processes_a_cpu_and_not_more_than_eight(
    monkeypatch: pytest.MonkeyPatch, cpus: int, processes: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(cpus)))
    assert spread.pytest_xdist_auto_num_workers() == processes
