"""Fixtures of the whole suite, and how it runs: see testkit.ci for the rule of a complete run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest
from testkit import ci, venvs

pytest_plugins = ["pytester"]

# Noisy machines make time limits of single examples flaky; a complete run takes the same examples every time.
hypothesis.settings.register_profile("suite", deadline=None, derandomize=ci.complete_run())
hypothesis.settings.load_profile("suite")

REAL_TIMEOUT_S = 600


def pytest_configure(config: pytest.Config) -> None:
    """The rule of a complete run holds for this suite."""
    config.pluginmanager.register(ci, "testkit.ci")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that may first have to build a virtual environment gets the time for it."""
    for item in items:
        if item.get_closest_marker("real") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(REAL_TIMEOUT_S))


@pytest.fixture(scope="session")
def venv_python() -> Callable[[str], Path]:
    """`venv_python(name)`: the python of one of venvs.RECIPES. Skips only where no package index can be reached, and not
    even there in a complete run."""

    def python(name: str) -> Path:
        try:
            return venvs.known(name)
        except venvs.NetworkAbsent as error:
            if ci.complete_run():
                raise
            pytest.skip(f"no network to build {name}: {error}")

    return python
