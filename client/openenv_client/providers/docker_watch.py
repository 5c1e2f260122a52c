"""One thread that keeps what a container prints and notes how it ends, so that asking about it costs nothing."""

from __future__ import annotations

import threading
import time
from contextlib import closing
from typing import Any

import requests
import urllib3
from docker.errors import APIError, DockerException, NotFound
from docker.models.containers import Container

from .docker_ending import REMOVED, Ending, ending_of
from .output import OutputRing

_SETTLES_S = 1.0
"""The output ends a moment before the engine calls the container ended."""
_AGAIN_S = 0.5
_BROKEN = (DockerException, requests.RequestException, urllib3.exceptions.HTTPError, OSError)


class Watch:
    """From construction, when the container runs, until it has ended or `leave` was called. A restart of the engine is fine."""

    def __init__(self, container: Container, output: OutputRing) -> None:
        self._container, self._output = container, output
        self._left = threading.Event()
        self._ended = threading.Event()
        self._ending: Ending | None = None
        self._thread = threading.Thread(target=self._watch, name=f"watch {container.name}", daemon=True)
        self._thread.start()

    @property
    def ending(self) -> Ending | None:
        """None while it runs. All output is in the ring when this is set."""
        return self._ending if self._ended.is_set() else None

    def wait(self, timeout_s: float) -> Ending | None:
        """As `ending`, after waiting for it for at most `timeout_s` seconds."""
        self._ended.wait(timeout_s)
        return self.ending

    def leave(self, timeout_s: float) -> None:
        """Look at it no more, and wait for the thread: for when it has ended, or nothing can be known any more."""
        self._left.set()
        self._thread.join(timeout_s)

    def _watch(self) -> None:
        since = 0.0
        while not self._left.is_set():
            before = time.time()
            self._follow(since)
            since = time.time() if since else before
            ending = self._ask(_SETTLES_S)
            if ending is not None:
                self._ending = ending
                self._ended.set()
                return
            self._left.wait(_AGAIN_S)

    def _follow(self, since: float) -> None:
        """Keeps the output until it ends: with the container, or with the engine."""
        try:
            stream: Any = self._container.logs(stream=True, follow=True, since=since or None)
            with closing(stream):
                for chunk in stream:
                    self._output.write(chunk)
        except NotFound:
            return  # `_ask` finds that out by itself
        except APIError as exc:
            told = f"openenv_client: the engine does not show this container's output: {exc.explanation}\n"
            self._output.write(told.encode())
        except _BROKEN:
            return  # the engine went away; `_ask` tells whether the container is still there

    def _ask(self, settle_s: float) -> Ending | None:
        """How it ended; None if it still runs after `settle_s`, or the engine does not answer."""
        deadline = time.monotonic() + settle_s
        while True:
            try:
                self._container.reload()
                ending = ending_of(self._container.attrs)
            except NotFound:
                return REMOVED
            except _BROKEN:
                return None
            if ending is not None or time.monotonic() >= deadline or self._left.wait(0.02):
                return ending
