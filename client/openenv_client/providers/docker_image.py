"""Images: what one says about itself, and its pull where it is missing."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import docker
import requests
from docker.errors import DockerException, ImageNotFound

from ..errors import LaunchFailed
from .docker_engine import engine_asked, explanation

DEFAULT_PORT = 8000
_MEGABYTE = 1_000_000


@dataclass(frozen=True)
class ImageFacts:
    """`exposed`: its TCP ports, ascending. `variables`: the names of those that it sets."""

    exposed: tuple[int, ...] = ()
    variables: frozenset[str] = frozenset()

    @property
    def port(self) -> int:
        """Where its server most likely listens: its only EXPOSE, else OpenEnv's 8000."""
        return self.exposed[0] if len(self.exposed) == 1 else DEFAULT_PORT


def facts_of(config: Mapping[str, Any]) -> ImageFacts:
    """From the `Config` of the engine's answer (null where an image sets nothing)."""
    ports = [port.partition("/") for port in config.get("ExposedPorts") or {}]
    exposed = sorted(int(number) for number, _, protocol in ports if protocol in ("", "tcp"))
    variables = frozenset(each.partition("=")[0] for each in config.get("Env") or [])
    return ImageFacts(tuple(exposed), variables)


def look_up(client: docker.DockerClient, image: str) -> ImageFacts | None:
    """None if the engine does not have it."""
    with engine_asked(f"docker:{image}", "looking for the image"):
        try:
            return facts_of(client.images.get(image).attrs.get("Config") or {})
        except ImageNotFound:
            return None


class Pull:
    """One pull, in a thread of its own: its caller may leave at any time, and the pull then ends at the engine's next word."""

    def __init__(self, client: docker.DockerClient, image: str) -> None:
        self._client, self._image = client, image
        self._news: queue.SimpleQueue[str | Exception | None] = queue.SimpleQueue()
        self._left = threading.Event()

    def run(self, report: Callable[[str], None], check: Callable[[], None]) -> None:
        """Returns when the image is there. `report` is told how far it is; `check` raises to leave, and is asked whenever
        `wake` was called. Raises `LaunchFailed` if the image cannot be had."""
        threading.Thread(target=self._pull, name=f"pull of {self._image}", daemon=True).start()
        try:
            for line in self._lines(check):
                report(line)
        finally:
            self._left.set()

    def wake(self) -> None:
        """Make `run` ask its `check` now."""
        self._news.put("")

    def _lines(self, check: Callable[[], None]) -> Iterator[str]:
        while True:
            news = self._news.get()
            check()
            if news is None:
                return
            if isinstance(news, Exception):
                raise _cannot_be_had(self._image, news) from news
            if news:
                yield news

    def _pull(self) -> None:
        layers = Layers()
        try:
            events = self._client.api.pull(self._image, stream=True, decode=True)
            for event in events:
                if self._left.is_set():
                    events.close()
                    return
                if "error" in event:
                    raise DockerException(str(event["error"]))
                if line := layers.take_in(event):
                    self._news.put(f"pulling {self._image}: {line}")
        except (DockerException, requests.RequestException) as exc:
            self._news.put(exc)
        else:
            self._news.put(None)


class Layers:
    """How far a pull is, from its events."""

    def __init__(self) -> None:
        self._bytes: dict[str, tuple[int, int]] = {}
        self._told = ""

    def take_in(self, event: Mapping[str, Any]) -> str:
        """What there is to tell after this event: `3 of 7 layers, 120 of 400 MB`, or "" if that was told already."""
        detail, layer = event.get("progressDetail") or {}, event.get("id", "")
        if event.get("status") == "Downloading" and "total" in detail:
            self._bytes[layer] = (detail["current"], detail["total"])
        elif event.get("status") in ("Download complete", "Already exists", "Pull complete"):
            total = self._bytes.get(layer, (0, 0))[1]
            self._bytes[layer] = (total, total)
        elif event.get("status") == "Pulling fs layer":
            self._bytes.setdefault(layer, (0, 1))
        line = self._line()
        if line == self._told:
            return ""
        self._told = line
        return line

    def _line(self) -> str:
        if not self._bytes:
            return "asking for it"
        done = sum(current == total for current, total in self._bytes.values())
        current, total = (sum(each[index] for each in self._bytes.values()) // _MEGABYTE for index in (0, 1))
        return f"{done} of {len(self._bytes)} layers, {current} of {total} MB"


def _cannot_be_had(image: str, exc: Exception) -> LaunchFailed:
    return LaunchFailed(
        f"docker:{image}",
        f"the image is not on this machine and cannot be pulled: {explanation(exc)}. "
        f"Build it or correct its name (`docker images` lists what is here); for a private registry, `docker login` first",
    )
