"""Node.js and what the suite takes from npm: the official conformance suites, the TypeScript clients, the Inspector.

The npm of the machine installs; node itself is a package among them, since the suites and the Inspector need a newer one than
most machines have. Everything lies in the folder of `testkit.cache`. No package's install script is run.
"""

from __future__ import annotations

import json
import platform
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from testkit import cache

NODE: Final = "node"
SUITES: Final = "conformance-suites"
CLIENTS: Final = "typescript-clients"
INSPECTOR: Final = "inspector"

STABLE_SUITE: Final = "suite-stable"
NEXT_SUITE: Final = "suite-next"

NODE_VERSION: Final = "22.23.3"
PACKAGES: Final[Mapping[str, Mapping[str, str]]] = {
    SUITES: {
        STABLE_SUITE: "npm:@modelcontextprotocol/conformance@0.1.16",
        NEXT_SUITE: "npm:@modelcontextprotocol/conformance@0.2.0-alpha.12",
    },
    CLIENTS: {"@modelcontextprotocol/sdk": "1.32.2", "@modelcontextprotocol/client": "2.4.0"},
    INSPECTOR: {"@modelcontextprotocol/inspector": "2.12.0"},
}
"""What is installed together, by name: the dependencies of a package.json."""

class NpmAbsent(cache.BuildFailed):
    """There is no npm to install with: a reason for which tests may skip, as for an absent network."""


_NO_NETWORK = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ENETUNREACH", "ETIMEDOUT", "EHOSTUNREACH", "ENOTCACHED")
_ARCHITECTURES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}


def node() -> Path:
    """The node executable, of NODE_VERSION. Raises as `modules` does."""
    package = f"node-{sys.platform}-{_architecture()}"
    return _installed(NODE, {package: NODE_VERSION}) / package / "bin" / "node"


def modules(name: str) -> Path:
    """The `node_modules` folder of a name in PACKAGES, filled now if no earlier run has filled it.

    Waits and builds as testkit.cache does. Raises cache.BuildFailed, cache.NetworkAbsent or NpmAbsent.
    """
    return _installed(name, PACKAGES[name])


def suite(alias: str) -> Path:
    """The program of STABLE_SUITE or NEXT_SUITE, to be run by `node`."""
    return modules(SUITES) / alias / "dist" / "index.js"


def inspector() -> Path:
    """The program of the Inspector, to be run by `node`; its command line is behind the option --cli."""
    return modules(INSPECTOR) / "@modelcontextprotocol" / "inspector" / "clients" / "launcher" / "build" / "index.js"


def npm() -> str:
    """The npm on PATH. Raises NpmAbsent."""
    found = shutil.which("npm")
    if found is None:
        raise NpmAbsent("npm is not on PATH; install Node.js 18 or newer with npm (Debian: apt-get install npm)")
    return found


def _installed(name: str, dependencies: Mapping[str, str]) -> Path:
    def build(folder: Path) -> None:
        folder.mkdir()
        (folder / "package.json").write_text(json.dumps({"private": True, "dependencies": dependencies}), "utf-8")
        installer = cache.Installer(_NO_NETWORK, {"npm_config_fetch_retries": "1"}, cwd=folder)
        installer.run(npm(), "install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")

    return cache.kept(name, [f"{package}@{version}" for package, version in dependencies.items()], build) / "node_modules"


def _architecture() -> str:
    try:
        return _ARCHITECTURES[platform.machine().lower()]
    except KeyError:
        raise cache.BuildFailed(f"npm has no node for the architecture {platform.machine()!r}") from None
