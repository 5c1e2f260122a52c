"""One start-to-stop of a container: its image, its place in the engine, its output, and its end whatever happens."""

from __future__ import annotations

import re
import threading
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import docker
import requests
from docker.errors import APIError, DockerException, NotFound
from docker.models.containers import Container

from ..errors import LaunchFailed, ProviderError
from .docker_engine import engine_asked, explanation, is_remote
from .docker_image import ImageFacts, Pull, look_up
from .docker_watch import Watch
from .hiding import NOTHING, Hidden
from .output import OutputRing
from .run import LINES_IN_ERRORS, Phase, quoted, says_address_in_use

_SETTLES_S = 2.0
_LEAVES_S = 5.0


class ContainerRun:
    """Ended by `end()`, from any thread; whatever is created after that is removed at once."""

    def __init__(self, client: docker.DockerClient, image: str, stop_grace_s: float, hidden: Hidden = NOTHING) -> None:
        """What is `hidden` is not in its logs."""
        self.image, self.what, self.name = image, f"docker:{image}", container_name(image)
        self.phase = Phase.STARTING
        self._client, self._stop_grace_s = client, stop_grace_s
        self._lock = threading.Lock()
        self._output = OutputRing(hidden=hidden)
        self._pull: Pull | None = None
        self._may_exist = False
        self._container: Container | None = None
        self._watch: Watch | None = None

    def image_facts(self, report: Callable[[str], None]) -> ImageFacts:
        """What the image says about itself; it is pulled if the engine does not have it, and `report` told how far that is."""
        facts = look_up(self._client, self.image)
        while facts is None:
            with self._lock:
                self._check_not_ended()
                self._pull = Pull(self._client, self.image)
            self._pull.run(lambda line: self._tell(line, report), self._check_not_ended)
            facts = look_up(self._client, self.image)
        return facts

    def launch(self, arguments: Mapping[str, Any], host_port: int | None) -> None:
        """Creates and starts the container; `arguments` are of the SDK's `create`. When it raises, `end()` is due."""
        with self._lock:
            self._check_not_ended()
            self._may_exist = True
            with engine_asked(self.what, "its container could not be created"):
                self._container = self._client.containers.create(self.image, name=self.name, **arguments)
            try:
                self._container.start()
            except (DockerException, requests.RequestException) as exc:
                raise self._not_started(exc, host_port) from exc
            self._watch = Watch(self._container, self._output)
            self._check_not_ended()
            self.phase = Phase.LAUNCHED

    def address(self, container_port: int, network: str | None) -> str:
        """The base URL. Raises `LaunchFailed` if the container has ended, `ProviderError` if there is no way to it."""
        container = self._launched()
        with engine_asked(self.what, "its address could not be learnt"):
            container.reload()
        settings = container.attrs["NetworkSettings"]
        published = (settings["Ports"] or {}).get(f"{container_port}/tcp")
        if published and not (network and inside_a_container()):
            if is_remote(self._client):
                raise ProviderError(
                    f"The Docker engine of {self.what} is on another machine, whose loopback cannot be reached from here: "
                    "run this on that machine, or start the server there and give its URL"
                )
            return f"http://127.0.0.1:{published[0]['HostPort']}"
        found = settings["Networks"].get(network or "", {}).get("IPAddress")
        if found:
            return f"http://{found}:{container_port}"
        self.pause(_SETTLES_S)
        raise ProviderError(f"{self.what} runs, but the engine gives neither a port nor an address to reach it")

    def pause(self, seconds: float) -> None:
        """Waits up to `seconds`. Raises `LaunchFailed` at once when the container has ended or the run was stopped."""
        ending = self._watch.wait(seconds) if self._watch else None
        self._check_not_ended()
        if ending is not None:
            raise self._failure(ending.reason())

    def poll(self) -> int | None:
        """None while it starts and while the container runs; else its exit status, 0 if none was ever started."""
        if self.phase is Phase.STARTING:
            return None
        ending = self._watch.ending if self._watch else None
        if ending is None:
            return None if self.phase is Phase.LAUNCHED else 0
        return ending.status

    def logs(self, tail: int) -> str:
        """The last lines of its output; while the image is pulled, how far that is."""
        return self._output.tail(tail)

    def last_lines(self) -> str:
        """What an error quotes of the log."""
        return quoted(self.logs(LINES_IN_ERRORS))

    def end(self) -> None:
        """Stops the container (SIGTERM, the grace, SIGKILL) and removes it with its volumes. May be called again, also after
        it raised `ProviderError`, which it does when the engine does not let the container go."""
        self.phase = Phase.ENDED  # before the lock, so that a launch which holds it is the last one
        if self._pull is not None:
            self._pull.wake()
        with self._lock:
            self.phase = Phase.ENDED  # a launch may have said otherwise meanwhile
            self._stop_gently()
            if self._may_exist:
                self._remove()
                self._may_exist = False
            if self._watch is not None:
                self._watch.leave(_LEAVES_S)

    def _stop_gently(self) -> None:
        """So that its last words are heard. That it is gone is seen to by `_remove`."""
        if self._container is None or self._watch is None or self._watch.ending is not None:
            return
        try:
            self._container.stop(timeout=max(1, round(self._stop_grace_s)))
        except (DockerException, requests.RequestException):
            return
        self._watch.wait(_SETTLES_S)

    def _remove(self) -> None:
        """By its name: a creation that was not answered may have succeeded all the same."""
        try:
            self._client.api.remove_container(self.name, v=True, force=True)
        except NotFound:
            return
        except APIError as exc:
            if exc.status_code == 409:  # somebody else is removing it
                return
            raise self._not_removed(exc) from exc
        except (DockerException, requests.RequestException) as exc:
            raise self._not_removed(exc) from exc

    def _not_removed(self, exc: Exception) -> ProviderError:
        hint = f"Try `docker rm -f {self.name}`"
        return ProviderError(f"The container {self.name} could not be removed: {explanation(exc)}. {hint}")

    def _not_started(self, exc: Exception, host_port: int | None) -> ProviderError:
        reason = explanation(exc)
        taken = says_address_in_use(reason) or "port is already allocated" in reason
        if host_port is not None and taken:
            return ProviderError(
                f"Port {host_port} on 127.0.0.1 is in use by another process; choose another port, or none to get a free one"
            )
        return self._failure(f"its container could not be started: {reason}")

    def _launched(self) -> Container:
        if self._container is None:
            raise self._failure("it has not been launched")
        return self._container

    def _tell(self, line: str, report: Callable[[str], None]) -> None:
        self._output.write(line.encode() + b"\n")
        report(line)

    def _check_not_ended(self) -> None:
        if self.phase is Phase.ENDED:
            raise self._failure("it was stopped while it was starting")

    def _failure(self, reason: str) -> LaunchFailed:
        return LaunchFailed(self.what, reason, self.last_lines())


def container_name(image: str) -> str:
    """A new name that says what it is; also known before anybody has answered."""
    plain = re.sub(r"[^a-z0-9]+", "-", image.split("@")[0].rsplit("/", 1)[-1].split(":")[0].lower()).strip("-")
    return f"openenv-{plain or 'environment'}-{uuid.uuid4().hex[:12]}"


def inside_a_container() -> bool:
    """Whether this process runs in a container of Docker's, where a published port of another one is on a foreign loopback."""
    return Path("/.dockerenv").exists()
