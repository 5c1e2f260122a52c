"""Fixtures of the whole suite, and how it runs: see testkit.ci for the rule of a complete run, testkit.spread for `-n`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import hypothesis
import pytest
from testkit import ci, images, servers, venvs

pytest_plugins = ["pytester", "testkit.spread"]

# Noisy machines make time limits of single examples flaky; a complete run takes the same examples every time.
hypothesis.settings.register_profile("suite", deadline=None, derandomize=ci.complete_run())
hypothesis.settings.load_profile("suite")

REAL_TIMEOUT_S = 600


def pytest_configure(config: pytest.Config) -> None:
    """The rule of a complete run holds for this suite."""
    config.pluginmanager.register(ci, "testkit.ci")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that may first have to build a virtual environment, or an image, gets the time for it."""
    for item in items:
        if (item.get_closest_marker("real") or item.get_closest_marker("docker")) and not item.get_closest_marker("timeout"):
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


@pytest.fixture(scope="session")
def docker_engine() -> None:
    """A Docker engine answers. Skips where none does, but not in a complete run."""
    try:
        images.require_docker()
    except images.DockerAbsent as error:
        if ci.complete_run():
            raise
        pytest.skip(f"no Docker: {error}")


class Launch(Protocol):
    """Starts a real server of one of the environments in tests/real/environments; see testkit.servers.launch."""

    def __call__(
        self, environment: str, package: str = venvs.OPENENV_0_10, env: Mapping[str, str] | None = None
    ) -> servers.Server: ...


@pytest.fixture(scope="module")
def launch(venv_python: Callable[[str], Path]) -> Iterator[Launch]:
    """`launch(environment, package, env)`: a serving real server. It runs until the module's last test is over; the same
    request gives the same server again, as long as it lives."""
    running: dict[tuple[object, ...], servers.Server] = {}
    with ExitStack() as stack:

        def start(
            environment: str, package: str = venvs.OPENENV_0_10, env: Mapping[str, str] | None = None
        ) -> servers.Server:
            key = (environment, package, *sorted((env or {}).items()))
            if key not in running or running[key].poll() is not None:
                venv_python(package)
                running[key] = stack.enter_context(servers.launch(environment, package, env))
            return running[key]

        yield start
