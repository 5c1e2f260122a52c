"""How a container is created: what its server may use, and what is taken from it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any

from docker.types import LogConfig, Mount

from .memory import parse_size

DEFAULT_PIDS = 1024
_UNREACHABLE_NETWORKS = {
    "none": "nothing could reach its server",
    "host": "its server would listen on every interface of this machine; leave network out, or name one of your own",
}
UNLESS_SET = {
    "PYTHONHASHSEED": "0",  # the order of sets repeats, so a recorded episode can be replayed
    "PYTHONUNBUFFERED": "1",  # what a server prints before it hangs is in its log
}
_LOG_SIZE = {"max-size": "10m", "max-file": "2"}


@dataclass(frozen=True)
class ContainerOptions:
    """What one container gets. Always on top: no capabilities, no new privileges, an init process, 20 MB of log at most.

    `memory`: bytes with a suffix b, k, m or g, swap included. `cpus`: of one CPU, so 1.5 is one and a half. `pids`: processes
    and threads. `network`: an existing one, by name; on an internal one the container's own address is used instead of a port
    on loopback. `read_only`: the root file system; /tmp stays writable, in memory. `mounts`: absolute path in the container →
    absolute path on the engine's machine, read-only unless it ends in `:rw`. `container_port`: where the server listens, by
    default the image's only EXPOSE, else 8000. Raises `ValueError` for what no container could have.
    """

    memory: str | None = None
    cpus: float | None = None
    pids: int = DEFAULT_PIDS
    network: str | None = None
    read_only: bool = False
    mounts: Mapping[str, str] = field(default_factory=dict)
    container_port: int | None = None

    def __post_init__(self) -> None:
        if self.memory is not None:
            parse_size(self.memory)
        if self.cpus is not None and not self.cpus > 0:
            raise ValueError(f"cpus={self.cpus!r}: a server needs more than 0")
        if self.pids < 1:
            raise ValueError(f"pids={self.pids!r}: a server needs 1 process or more")
        if self.container_port is not None and not 1 <= self.container_port <= 65535:
            raise ValueError(f"container_port={self.container_port!r} is no port: expected 1 to 65535")
        if self.network in _UNREACHABLE_NETWORKS:
            raise ValueError(f"network={self.network!r} cannot be used: {_UNREACHABLE_NETWORKS[self.network]}")
        for inside, outside in self.mounts.items():
            parse_mount(inside, outside)

    def with_changes(self, changes: Mapping[str, Any]) -> ContainerOptions:
        """Raises `TypeError` for an option that there is not, `ValueError` as the class does."""
        if unknown := sorted(set(changes) - set(self.__dataclass_fields__)):
            known = ", ".join(self.__dataclass_fields__)
            raise TypeError(f"There is no container option {', '.join(unknown)}; there are: {known}")
        return replace(self, **changes)


def parse_mount(inside: str, outside: str) -> Mount:
    """Raises `ValueError` for relative paths: the engine knows no folder that they could be seen from."""
    source, read_only = outside, True
    for suffix, meaning in ((":ro", True), (":rw", False)):
        if outside.endswith(suffix):
            source, read_only = outside[: -len(suffix)], meaning
    for path in (inside, source):
        if not PurePosixPath(path).is_absolute():
            raise ValueError(f"mounts: {path!r} is no absolute path")
    return Mount(inside, source, type="bind", read_only=read_only)


def create_arguments(
    options: ContainerOptions,
    *,
    env_vars: Mapping[str, str],
    image_variables: frozenset[str],
    container_port: int,
    host_port: int | None,
    labels: Mapping[str, str],
) -> dict[str, Any]:
    """The keyword arguments of the docker SDK's `containers.create`. `host_port` None: the engine chooses one."""
    unless_set = {name: value for name, value in UNLESS_SET.items() if name not in image_variables}
    return {
        "environment": {**unless_set, **env_vars},
        "labels": dict(labels),
        "ports": {f"{container_port}/tcp": ("127.0.0.1", host_port)},
        "network": options.network,
        "mem_limit": options.memory,
        "memswap_limit": options.memory,
        "nano_cpus": None if options.cpus is None else round(options.cpus * 1e9),
        "pids_limit": options.pids,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "init": True,  # process 1 would ignore SIGTERM, and reap no orphans
        "read_only": options.read_only,
        "tmpfs": {"/tmp": ""} if options.read_only else {},
        "mounts": [parse_mount(inside, outside) for inside, outside in options.mounts.items()],
        "log_config": LogConfig(type=LogConfig.types.JSON, config=_LOG_SIZE),
    }


def check_env_vars(env_vars: Mapping[str, str]) -> None:
    """Raises `ValueError` for a name that no variable can have. The engine's own error would quote the value."""
    for name, value in env_vars.items():
        if not name or "=" in name or "\0" in name + value:
            raise ValueError(f"{name!r} cannot be an environment variable: no name, a = in it, or a zero byte")
