"""What launches of dead gateways left: containers and Swarm services, known by their labels, and clones of uv:git+ sources.

Processes are not among it: each has a guard, which ends it with the gateway. What may still be in use is never touched.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import docker

from openenv_client.providers.docker_reap import left_over
from openenv_client.providers.docker_reap import reap as reap_containers
from openenv_client.providers.swarm_reap import left_over_services, reap_services
from openenv_client.providers.uv import CLONE_PREFIX
from openenv_gateway.doctor.finding import Finding, Status, ok

REAP: Final = "openenv-gateway doctor --reap"
FRESH_S: Final = 120.0
"""A folder this young may belong to a clone whose git has not started yet."""


def containers(client: docker.DockerClient, *, reap: bool) -> Iterator[Finding]:
    """Containers whose gateway has certainly ended; removed if `reap`."""
    removed = reap_containers(client) if reap else []
    yield _told("stale containers", "containers", removed, left_over(client), reap)


def services(client: docker.DockerClient, *, reap: bool) -> Iterator[Finding]:
    """Swarm services whose gateway has certainly ended; removed if `reap`. Nothing to say where there is no Swarm."""
    removed = reap_services(client) if reap else []
    left = left_over_services(client)
    if removed or left:
        yield _told("stale services", "services", removed, left, reap)


def clones(folder: Path | None = None, *, reap: bool) -> Iterator[Finding]:
    """Clones that no process uses any more, in the folder for temporary files; removed if `reap`. Linux only."""
    if not Path("/proc/self/cmdline").exists():
        return
    found = _unused(folder or Path(tempfile.gettempdir()))
    removed = [path for path in found if _removed(path)] if reap else []
    left = [str(path) for path in found if path not in removed]
    yield _told("stale clones", "folders", [str(path) for path in removed], left, reap)


def _told(check: str, what: str, removed: Sequence[str], left: Sequence[str], reap: bool) -> Finding:
    names = ", ".join(left[:5]) + (" …" if len(left) > 5 else "")
    details = {"removed": list(removed), "left": list(left)}
    if left and reap:
        said = f"{len(left)} {what} could not be removed: {names}"
        return Finding(check, Status.FAILED, said, "Remove them by hand, as a user who may.", details)
    if left:
        return Finding(check, Status.NOTE, f"{len(left)} {what} of gateways that have ended: {names}", REAP, details)
    return ok(check, f"none left, {len(removed)} removed: {', '.join(removed)}" if removed else "none", **details)


def _unused(folder: Path) -> list[Path]:
    """Our user's clones that are not fresh, and that no process names in its command line (uv and git both do)."""
    commands = _command_lines()
    return [
        path
        for path in sorted(folder.glob(f"{CLONE_PREFIX}*"))
        if _is_old_and_ours(path) and not any(os.fsencode(path) in command for command in commands)
    ]


def _is_old_and_ours(path: Path) -> bool:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return False  # its gateway removed it just now
    return status.st_uid == os.getuid() and time.time() - status.st_mtime > FRESH_S


def _command_lines() -> list[bytes]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                found.append((entry / "cmdline").read_bytes())
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has ended meanwhile
    return found


def _removed(path: Path) -> bool:
    shutil.rmtree(path, ignore_errors=True)  # what is left is told as such
    return not path.exists()
