"""testkit.ci: a complete run skips nothing."""

from __future__ import annotations

import pytest

A_SKIP = """
    import pytest

    def test_runs():
        assert 1 + 1 == 2

    def test_lacks_something():
        pytest.skip("no engine here")
"""


def run(pytester: pytest.Pytester, *options: str) -> pytest.RunResult:
    pytester.makepyfile(test_sample=A_SKIP)
    return pytester.runpytest_inprocess("-p", "testkit.ci", "-p", "no:cacheprovider", "-p", "no:asyncio", *options)


@pytest.mark.parametrize("options", [(), ("-n2",)], ids=["in one process", "in two"])
def test_a_skip_fails_a_complete_run_and_is_named_with_its_reason(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    monkeypatch.setenv("OPENENV_GATEWAY_CI", "1")
    result = run(pytester, *options)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*1 passed, 1 skipped*", "SKIPPED*test_lacks_something*no engine here*"])


@pytest.mark.parametrize("options", [(), ("-n1",)], ids=["in this process", "in another"])
def test_what_a_test_measured_is_printed(pytester: pytest.Pytester, options: tuple[str, ...]) -> None:
    pytester.makepyfile(test_speed="def test_start(record_property):\n    record_property('start', '0.2 s')\n")
    result = pytester.runpytest_inprocess("-p", "testkit.ci", "-p", "no:cacheprovider", "-p", "no:asyncio", *options)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*measured*", "start: 0.2 s"])


def test_a_skip_is_fine_otherwise(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENENV_GATEWAY_CI", raising=False)
    result = run(pytester)
    assert result.ret == pytest.ExitCode.OK
    result.assert_outcomes(passed=1, skipped=1)
