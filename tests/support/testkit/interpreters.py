"""The Pythons of this machine on which the client has to work."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

VERSIONS: Final = ("3.10", "3.11", "3.12", "3.13")


def found() -> dict[str, str]:
    """An interpreter that runs for each version that is here, by version: on PATH, or kept by pyenv."""
    this = f"{sys.version_info.major}.{sys.version_info.minor}"
    return {version: python for version in VERSIONS if (python := sys.executable if version == this else _find(version))}


def _find(version: str) -> str | None:
    kept = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    return next((python for python in (f"python{version}", *map(str, kept)) if _runs(python, version)), None)


def _runs(python: str, version: str) -> bool:
    """A name on PATH may be the shim of a version manager that has no such version."""
    show = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([python, "-c", show], capture_output=True, text=True, timeout=30)
    except OSError:
        return False
    return done.stdout.strip() == version
