"""Whose a container is: labels that name the process that launched it, by which the next one clears away what it left.

A process that is killed cannot clean up, and the engine's containers do not end with it.
"""

from __future__ import annotations

import os
import socket
import sys
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

LABEL = "openenv-gateway.owner"
_ENDED = ("Z", "X")  # killed, but its parent has not asked yet
_PID, _STARTED, _WHERE, _HOST = f"{LABEL}.pid", f"{LABEL}.started", f"{LABEL}.where", f"{LABEL}.host"


@dataclass(frozen=True)
class Owner:
    """A process. `started` tells it from a later one with its pid; `where` is the boot and the pid namespace that the pid is
    from, `host` the host name, which is the container's id where the process runs in a container."""

    instance: str
    pid: int
    started: str
    where: str
    host: str

    def labels(self) -> dict[str, str]:
        return {LABEL: self.instance, _PID: str(self.pid), _STARTED: self.started, _WHERE: self.where, _HOST: self.host}


@cache
def this_process() -> Owner:
    """Ourselves. A forked copy is somebody else: it must ask anew (see `os.register_at_fork` below)."""
    return Owner(uuid.uuid4().hex, os.getpid(), started(os.getpid()) or "", where(), socket.gethostname())


if sys.platform != "win32":
    os.register_at_fork(after_in_child=this_process.cache_clear)


def owner_of(labels: Mapping[str, str]) -> Owner | None:
    """None for labels that are not ours, or damaged."""
    found = [labels.get(name) for name in (LABEL, _PID, _STARTED, _WHERE, _HOST)]
    if None in found or not str(found[1]).isdigit():
        return None
    instance, pid, began, place, host = map(str, found)
    return Owner(instance, int(pid), began, place, host)


def has_ended(owner: Owner, container_started_after: Callable[[str], bool]) -> bool:
    """Whether the owner is certainly gone; False where that cannot be known, for its container may be in use.

    `container_started_after(host)`: whether the engine knows a container of that id that is not running, or was started again
    since. That is asked for owners in another container, whose pids mean nothing here.
    """
    if owner.where == where():
        return started(owner.pid) != owner.started
    return container_started_after(owner.host)


def started(pid: int) -> str | None:
    """When a process was started, as its system counts (proc(5): field 22 of stat); None if it does not run.

    Without /proc only whether it runs is known, and "" stands for when.
    """
    if sys.platform == "linux":
        try:
            fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return None
        return None if fields[0] in _ENDED else fields[19]
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        return ""
    return ""


@cache
def where() -> str:
    """What makes a pid mean something: the machine's boot and the pid namespace."""
    if sys.platform != "linux":
        return socket.gethostname()
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot} {os.readlink('/proc/self/ns/pid')}"
