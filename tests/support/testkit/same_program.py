"""Runs tests/real/clients/same_program.py: one program for OpenEnv's client and for ours, in either mode."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any, Final

from testkit import servers

PROGRAM: Final = Path(__file__).parents[2] / "real" / "clients" / "same_program.py"


def program(python: str | Path, module: str, *lines: str, mode: str = "simulation") -> list[Any]:
    """What the program saw, one log for each of `lines` ("NAME URL"). `module` is `openenv.core` or `openenv_client`; `mode` is
    for the latter, as OPENENV_CLIENT_MODE."""
    done = subprocess.run(
        [str(python), "-P", "-W", "error::ResourceWarning", str(PROGRAM), module],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        timeout=120,
        env={**servers.small_environment({}), "PATH": os.environ["PATH"], "OPENENV_CLIENT_MODE": mode},
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
