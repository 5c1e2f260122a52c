"""What the tests with real servers share: one server of each version of the framework, with every environment on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from testkit import mcp_1, servers, venvs
from testkit.arcade import PACKAGES, SESSIONS, Arcade


@pytest.fixture(scope="session", autouse=True)
def old_clients() -> Iterator[None]:
    """The processes of mcp 1 clients, which are kept between tests, end with the run."""
    yield
    mcp_1.end_idle()


@pytest.fixture(scope="session")
def arcades(venv_python: Callable[[str], Path]) -> Iterator[Callable[[str], Arcade]]:
    """`arcades(package)`: started at the first request, ended with the run. Tests must not end it, nor fill it for long."""
    running: dict[str, Arcade] = {}
    with ExitStack() as stack:

        def arcade(package: str) -> Arcade:
            if package not in running:
                venv_python(package)
                server = stack.enter_context(servers.launch("arcade", package, {"MAX_SESSIONS": str(SESSIONS)}))
                running[package] = Arcade(package, server)
            return running[package]

        yield arcade


@pytest.fixture(scope="session")
def generated(tmp_path_factory: pytest.TempPathFactory, venv_python: Callable[[str], Path]) -> Iterator[servers.Server]:
    """A project as `openenv init` writes it, served at the root of its server, with room for one session."""
    venv_python(venvs.OPENENV_0_10)
    project = servers.generate(tmp_path_factory.mktemp("generated"))
    with servers.launch_command(servers.app_command("server.app:app", project), project) as server:
        yield server


@pytest.fixture(scope="module", params=PACKAGES)
def arcade(request: pytest.FixtureRequest, arcades: Callable[[str], Arcade]) -> Arcade:
    """The test runs once with each version of the framework."""
    return arcades(request.param)


@pytest.fixture(scope="module")
def newest(arcades: Callable[[str], Arcade]) -> Arcade:
    """The newest version alone."""
    return arcades(venvs.OPENENV_0_10)
