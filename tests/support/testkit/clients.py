"""Clients and providers as users write them, for the tests of the client's contract."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from openenv_client import EnvClient, StepResult


@dataclass(frozen=True)
class Add:
    """A typed action of the counting environment."""

    add: int


@dataclass(frozen=True)
class Count:
    """Its typed observation."""

    count: int


class CountingClient(EnvClient[Add, Count, int]):
    """A user's typed client of testkit's counting environment (see testkit.script.Counting)."""

    def _step_payload(self, action: Add) -> dict[str, Any]:
        return {"add": action.add}

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[Count]:
        return StepResult(Count(payload["observation"]["count"]), payload.get("reward"), payload.get("done", False))

    def _parse_state(self, payload: dict[str, Any]) -> int:
        count: int = payload["count"]
        return count


class Recorded:
    """What a provider was asked to do, in order, and on which threads; each verb may be made to fail or to wait."""

    def __init__(self, url: str, fail: dict[str, BaseException] | None = None) -> None:
        self.url = url
        self.fail = fail or {}
        self.calls: list[tuple[Any, ...]] = []
        self.threads: set[str] = set()
        self.gate: dict[str, threading.Event] = {}
        self.entered: dict[str, threading.Event] = {}
        self.running = 0

    @property
    def verbs(self) -> list[str]:
        """The verbs called, in order."""
        return [call[0] for call in self.calls]

    def hold(self, verb: str) -> threading.Event:
        """Let the verb wait until the event that is returned is set; `entered[verb]` tells that it waits."""
        self.entered[verb] = threading.Event()
        return self.gate.setdefault(verb, threading.Event())

    def note(self, verb: str, *details: Any) -> None:
        """One call."""
        self.calls.append((verb, *details))
        self.threads.add(threading.current_thread().name)
        if verb in self.gate:
            self.entered[verb].set()
            if not self.gate[verb].wait(10):
                raise TimeoutError(f"nobody let {verb} go on")
        if verb in self.fail:
            raise self.fail[verb]


class ServerProvider(Recorded):
    """A third party's provider of the family start/stop."""

    def start(self, port: int | None = None, env_vars: dict[str, str] | None = None, **options: Any) -> str:
        """See providers.base."""
        self.note("start", {"port": port, "env_vars": env_vars, **options})
        self.running += 1
        return self.url

    def wait_for_ready(self, timeout_s: float = 30.0) -> None:
        """See providers.base."""
        self.note("wait_for_ready", timeout_s)

    def stop(self) -> None:
        """See providers.base."""
        self.note("stop")
        self.running = 0


class ImageProvider(Recorded):
    """A third party's provider of the family start_container/stop_container, which owns its image."""

    def start_container(self, image: str | None = None, port: int | None = None, **options: Any) -> str:
        """See providers.base."""
        self.note("start_container", image, {"port": port, **options})
        self.running += 1
        return self.url

    def wait_for_ready(self, base_url: str, timeout_s: float = 30.0) -> None:
        """See providers.base."""
        self.note("wait_for_ready", base_url)

    def stop_container(self) -> None:
        """See providers.base."""
        self.note("stop_container")
        self.running = 0


class NeedsImage(ImageProvider):
    """As most are: the image is an argument."""

    def start_container(self, image: str, port: int | None = None, **options: Any) -> str:  # type: ignore[override]
        """See providers.base."""
        return super().start_container(image, port, **options)


FAMILIES: tuple[Callable[..., Any], ...] = (ServerProvider, ImageProvider)
