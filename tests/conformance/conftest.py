"""What the outside judges share: their programs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from testkit import cache, ci, node


@pytest.fixture(scope="session")
def node_modules() -> Callable[[str], Path]:
    """`node_modules(name)`: the installed packages of a name in node.PACKAGES, and node itself. Skips only where there is no
    npm or no registry to reach, and not even there in a complete run."""

    def installed(name: str) -> Path:
        try:
            node.node()
            return node.modules(name)
        except (cache.NetworkAbsent, node.NpmAbsent) as error:
            if ci.complete_run():
                raise
            pytest.skip(f"{name} cannot be installed: {error}")

    return installed
