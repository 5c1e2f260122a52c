"""The machine: versions, tools, room on the disk and in memory, ports."""

from __future__ import annotations

import errno
import http.client
import importlib.util
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Final

from openenv_client.errors import ProviderError
from openenv_client.providers.launched import reachable_url
from openenv_client.providers.uv import find_uv
from openenv_gateway.doctor.finding import Finding, Status, absent, ok

OLDEST_PYTHON: Final = (3, 11)
MB: Final = 10**6
LITTLE_DISK, NO_DISK = 2000 * MB, 200 * MB
LITTLE_MEMORY, NO_MEMORY = 512 * MB, 128 * MB
ANSWERS_S: Final = 2.0


def python_version(found: tuple[int, ...] = sys.version_info[:3]) -> Finding:
    """Whether this Python is new enough, and which versions of our own packages are on it."""
    packages = {name: metadata.version(name) for name in ("openenv-gateway", "openenv-client")}
    version = ".".join(map(str, found))
    told = ", ".join(f"{name} {number}" for name, number in packages.items())
    details = {"python": version, "packages": packages}
    if found < OLDEST_PYTHON:
        wanted = ".".join(map(str, OLDEST_PYTHON))
        return Finding("python", Status.FAILED, f"Python {version} is too old", f"Install Python {wanted} or newer.", details)
    if len(set(packages.values())) > 1:
        remedy = "Install both packages from the same version of the repository."
        return Finding("python", Status.FAILED, f"the packages do not belong together: {told}", remedy, details)
    return ok("python", f"Python {version} on {platform.system()} {platform.machine()}, {told}", **details)


def event_loop() -> Finding:
    """Whether the extra `fast` is installed."""
    if importlib.util.find_spec("uvloop") is None:
        said, remedy = "uvloop is not installed: a call costs more than it has to", "pip install 'openenv-gateway[fast]'"
        return Finding("uvloop", Status.NOTE, said, remedy)
    return ok("uvloop", f"uvloop {metadata.version('uvloop')}", version=metadata.version("uvloop"))


def uv(*, is_needed: bool) -> Finding:
    """Whether uv runs, for uv: sources."""
    try:
        path = find_uv()
    except ProviderError:
        return absent("uv", "uv is not there, so uv: sources cannot be launched", "pip install uv", is_needed=is_needed)
    return ok("uv", f"{_version(path)} ({path})", path=path)


def git(*, is_needed: bool) -> Finding:
    """Whether git is there, for uv:git+ sources."""
    path = shutil.which("git")
    if path is None:
        said = "git is not there, so uv:git+ sources cannot be fetched"
        return absent("git", said, "Install git with this system's package manager.", is_needed=is_needed)
    return ok("git", f"{_version(path)} ({path})", path=path)


def disk(folder: Path | None = None, check: str = "disk") -> Finding:
    """The room where temporary files go (and clones of uv:git+ sources), or in another folder."""
    place = folder or Path(tempfile.gettempdir())
    return judge_room(check, shutil.disk_usage(place).free, f"free in {place}", LITTLE_DISK, NO_DISK, "Free some disk space.")


def memory() -> Finding:
    """The memory that servers can still have: the machine's, or what its control group is allowed, whichever is less."""
    found = [size for size in (_available_memory(), allowed_memory()) if size is not None]
    if not found:
        return ok("memory", "this system does not say how much is free")
    remedy = "End something, or set max_servers lower, or memory limits for the environments."
    return judge_room("memory", min(found), "free", LITTLE_MEMORY, NO_MEMORY, remedy)


def judge_room(check: str, free: int, where: str, little: int, none: int, remedy: str) -> Finding:
    """A failure below `none` bytes, a note below `little`. Pure."""
    said, details = f"{free / 1000 / MB:.1f} GB {where}", {"free_bytes": free}
    if free < none:
        return Finding(check, Status.FAILED, f"only {said}", remedy, details)
    if free < little:
        return Finding(check, Status.NOTE, f"only {said}", remedy, details)
    return ok(check, said, **details)


def port(host: str, number: int) -> Finding:
    """Whether `serve` can listen there. A port that a gateway has already is no fault: it is asked which it is."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    check, details = "port", {"host": host, "port": number}
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, number))
            probe.listen(1)
        except OSError as error:
            return _taken(check, host, number, error)
    return ok(check, f"{number} on {host} is free", **details)


def ports_for_servers() -> Finding:
    """Whether launched servers can have a port on loopback."""
    try:
        with socket.create_server(("127.0.0.1", 0)):
            return ok("loopback", "launched servers can listen on 127.0.0.1")
    except OSError as error:
        said = f"nothing can listen on 127.0.0.1: {error.strerror or error}"
        return Finding("loopback", Status.FAILED, said, "Bring the loopback interface up, and end what holds all its ports.")


def _taken(check: str, host: str, number: int, error: OSError) -> Finding:
    details = {"host": host, "port": number}
    if error.errno != errno.EADDRINUSE:
        said = f"cannot listen on {host}:{number}: {error.strerror or error}"
        return Finding(check, Status.FAILED, said, "Name an address of this machine and a port that you may use.", details)
    remedy = "Give serve another port with --port (0 takes any free one)."
    if _is_gateway(reachable_url(host, number)):
        return Finding(check, Status.NOTE, f"{number} on {host} is in use, by a gateway that runs", remedy, details)
    return Finding(check, Status.FAILED, f"{number} on {host} is in use, by something that is no gateway", remedy, details)


def _is_gateway(url: str) -> bool:
    address = url.removeprefix("http://")
    connection = http.client.HTTPConnection(address, timeout=ANSWERS_S)
    try:
        connection.request("GET", "/ready")
        page = json.loads(connection.getresponse().read(2**20))
    except (OSError, ValueError, http.client.HTTPException):
        return False
    finally:
        connection.close()
    return isinstance(page, dict) and {"ready", "draining", "environments"} <= page.keys()


def _version(program: str) -> str:
    try:
        done = subprocess.run([program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"found, but it does not run: {error}"
    return done.stdout.strip() or "no version told"


def _available_memory() -> int | None:
    """proc(5): MemAvailable is in kB. None on systems without /proc."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    found = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return int(found[0]) * 1024 if found else None


CGROUPS: Final = (("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"))
"""Limit and use of the process's control group as a container sees them, of version 2 and of version 1."""


def allowed_memory(root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """What the control group may still take, in bytes; None where it has no limit of its own."""
    for limit, used in CGROUPS:
        try:
            most, now = (root / limit).read_text().strip(), (root / used).read_text().strip()
        except OSError:
            continue
        if most.isdigit() and int(most) < _machine_memory():  # without a limit, version 1 says nearly 2**63
            return max(0, int(most) - int(now))
    return None


def _machine_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
