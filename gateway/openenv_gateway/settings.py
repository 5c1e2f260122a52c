"""The gateway's settings as plain frozen values. Read and checked once, in `config` and `spec`; nobody below looks further.

All durations are seconds, all sizes bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from openenv_gateway.mapping.options import MappingOptions

SourceKind = Literal["demo", "http", "cmd", "uv", "docker", "hf", "swarm", "k8s", "py"]
AfterDone = Literal["error", "auto_reset", "pass"]
LateReply = Literal["tell", "execute"]
SpaceLaunch = Literal["image", "uv"]


def _empty() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ContainerSettings:
    """What each container of an image gets; see `openenv_client.providers.docker_options`. `port` is the server's own, in the
    container; `mounts` are host paths by the path in the container."""

    memory: str | None = None
    cpus: float | None = None
    pids: int = 1024
    network: str | None = None
    read_only: bool = False
    mounts: Mapping[str, str] = field(default_factory=_empty)
    port: int | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """Where an environment's servers come from. `target` is what follows the kind's prefix: a URL, a command, a path, an
    image; empty for the demo. `cwd`, `app` and `env_vars` are for sources that launch something, `container` for images,
    `launch` for Spaces, `swarm_init` for Swarm services; `arguments` and `start` for classes: the keyword arguments of the
    constructor and of the start. The values of `env_vars`, `arguments` and `start` may be secret, and are in no `repr`."""

    kind: SourceKind
    target: str = ""
    cwd: Path | None = None
    app: str | None = None
    env_vars: Mapping[str, str] = field(default_factory=_empty, repr=False)
    container: ContainerSettings = field(default_factory=ContainerSettings)
    launch: SpaceLaunch = "image"
    swarm_init: bool = False
    arguments: Mapping[str, Any] = field(default_factory=_empty, repr=False)
    start: Mapping[str, Any] = field(default_factory=_empty, repr=False)

    def __str__(self) -> str:
        if self.kind in ("demo", "http"):
            return self.target or self.kind
        return f"{self.kind}:{self.target}"


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long each thing may take. `tools` overrides `step_s` for single tools."""

    connect_s: float = 10.0
    launch_s: float = 120.0
    reset_s: float = 120.0
    step_s: float = 60.0
    queue_s: float = 60.0
    late_reply_s: float = 30.0
    idle_s: float = 1800.0
    linger_s: float = 120.0
    tools: Mapping[str, float] = field(default_factory=_empty)


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """How many servers, and how many sessions on each (None: learnt from the server's refusal).

    `warm_servers` run and `warm_sessions` are connected (not reset) before anybody calls. A server that no lane uses for
    `idle_server_s` is stopped, one that gives no sign of life for `health_timeout_s` is given up; after `max_restarts` launches
    that failed in a row launching is given up."""

    max_servers: int = 4
    sessions_per_server: int | None = None
    warm_servers: int = 0
    warm_sessions: int = 0
    idle_server_s: float = 600.0
    health_timeout_s: float = 30.0
    max_restarts: int = 5


@dataclass(frozen=True, slots=True)
class EnvironmentSettings:
    """One environment. `reset` are the arguments of resets that the gateway makes by itself; `lane_queue` is how many calls
    may wait behind the running one in one lane; after `poll_after_s` the stream of a call that lasts is closed, and its client
    comes back for the answer (revision 2025-11-25; None: never)."""

    name: str
    source: Source
    mapping: MappingOptions = field(default_factory=MappingOptions)
    timeouts: Timeouts = field(default_factory=Timeouts)
    pool: PoolSettings = field(default_factory=PoolSettings)
    after_done: AfterDone = "error"
    late_reply: LateReply = "tell"
    reset: Mapping[str, Any] = field(default_factory=_empty)
    lane_queue: int = 16
    poll_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """The process. `allowed_hosts` and `allowed_origins` are names beyond loopback that the guards accept; `port` 0 is any;
    without `token_file` nobody has to authenticate."""

    environments: tuple[EnvironmentSettings, ...]
    host: str = "127.0.0.1"
    port: int = 8700
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    token_file: Path | None = None
    max_body_bytes: int = 4 * 2**20
    max_sessions: int = 10_000
    session_idle_s: float = 1800.0
    drain_timeout_s: float = 30.0
    page_size: int = 1000
