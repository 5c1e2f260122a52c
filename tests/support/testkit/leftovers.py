"""Whether anything of a launch is left: its processes, found by a mark in their environment variables, and its port.

The mark is inherited by whatever a process starts, also by what leaves its process group, its session and its parents.
"""

from __future__ import annotations

import os
import select
import socket
import time
import uuid
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from testkit.patience import patience

MARK: Final = "OPENENV_TEST_LAUNCH"


def new_mark() -> dict[str, str]:
    """The variable to launch with; nobody else has its value."""
    return {MARK: uuid.uuid4().hex}


def marked(mark: dict[str, str]) -> list[int]:
    """The processes that run with the mark. Zombies are none: they have ended."""
    wanted = f"{MARK}={mark[MARK]}".encode()
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and wanted in _variables(entry)]


def wait_until_gone(mark: dict[str, str], timeout_s: float) -> list[int]:
    """Waits until no process has the mark, for at most `timeout_s` seconds (on a busy machine: see patience); those left."""
    deadline = time.monotonic() + patience(timeout_s)
    while left := marked(mark):
        if time.monotonic() >= deadline:
            break
        _wait_for_end(left[0], deadline)
    return left


def listens(base_url: str) -> bool:
    """Whether anybody accepts connections at the URL's host and port."""
    parts = urlsplit(base_url)
    with socket.socket() as probe:
        return probe.connect_ex((parts.hostname, parts.port)) == 0


def command_of(process: int) -> str:
    """The command line, as `ps` shows it; empty for a process that has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _variables(entry: Path) -> bytes:
    try:
        return (entry / "environ").read_bytes()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return b""  # it has ended, or belongs to somebody else and so is none of ours


def _wait_for_end(process: int, deadline: float) -> None:
    try:
        descriptor = os.pidfd_open(process)
    except ProcessLookupError:
        return
    try:
        poller = select.poll()
        poller.register(descriptor, select.POLLIN)
        poller.poll(max(0.0, deadline - time.monotonic()) * 1000)
    finally:
        os.close(descriptor)
