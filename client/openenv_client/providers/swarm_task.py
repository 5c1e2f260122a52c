"""What the engine says about the one task of a Swarm service. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .docker_ending import Ending

_ENDED = ("complete", "failed", "shutdown", "rejected", "orphaned", "remove")


@dataclass(frozen=True)
class TaskState:
    """`node` and `port` are known once it runs; `ending` once it does not any more; `waits_for` is why it is not placed yet."""

    node: str = ""
    port: int | None = None
    ending: Ending | None = None
    waits_for: str = ""


def task_state(tasks: Sequence[Mapping[str, Any]]) -> TaskState:
    """Of the newest task; a service that has none yet waits."""
    if not tasks:
        return TaskState(waits_for="the service has no task yet")
    task = max(tasks, key=lambda each: str(each["CreatedAt"]))
    status = task["Status"]
    if status["State"] in _ENDED:
        code = (status.get("ContainerStatus") or {}).get("ExitCode")
        return TaskState(ending=Ending(code) if code else Ending(code or 0, error=status.get("Err", "")))
    if status["State"] != "running":
        return TaskState(waits_for=status.get("Err") or f"its task is {status['State']}")
    ports = (status.get("PortStatus") or {}).get("Ports") or []
    return TaskState(node=task["NodeID"], port=ports[0]["PublishedPort"] if ports else None)
