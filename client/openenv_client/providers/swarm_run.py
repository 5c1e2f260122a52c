"""One start-to-stop of a Swarm service with one task."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

import docker
import requests
from docker.errors import DockerException, NotFound

from ..errors import LaunchFailed, ProviderError
from .docker_ending import REMOVED
from .docker_engine import engine_asked, explanation
from .docker_run import container_name
from .hiding import Hidden
from .run import LINES_IN_ERRORS, Phase, quoted
from .swarm_task import TaskState, task_state

logger = logging.getLogger(__name__)
_LOOK_S = 0.1
_WATCH_S = 1.0
_LOG_EVERY = 5
_GONE_S = 10.0


class ServiceRun:
    """Ended by `end()`, from any thread; a service that is created after that is removed at once."""

    def __init__(self, client: docker.DockerClient, image: str, stop_grace_s: float, hidden: Hidden) -> None:
        """What is `hidden` is not in its logs."""
        self.image, self.what, self.name = image, f"swarm:{image}", container_name(image)
        self.phase = Phase.STARTING
        self._api: Any = client.api  # most of what it has for services is untyped
        self._stop_grace_s, self._hidden = stop_grace_s, hidden
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._may_exist = False
        self._state, self._log = TaskState(), ""

    def create(self, task: Any, **arguments: Any) -> None:
        """Creates the service; the arguments are of the SDK's `create_service`. When it raises, `end()` is due."""
        with self._lock:
            self._check_not_ended()
            self._may_exist = True
            with engine_asked(self.what, "its service could not be created"):
                self._api.create_service(task, name=self.name, **arguments)
            self._check_not_ended()
            self.phase = Phase.LAUNCHED
            threading.Thread(target=self._watch, name=f"watch {self.name}", daemon=True).start()

    def address(self, timeout_s: float) -> str:
        """The base URL, once its task runs. Raises `LaunchFailed` if that takes longer, or it ends."""
        deadline = time.monotonic() + timeout_s
        while (port := self._look().port) is None:
            if time.monotonic() >= deadline:
                why = self._state.waits_for or "it has no port"
                raise self._failure(f"no node has started it within {timeout_s:g} s: {why}")
            self.pause(_LOOK_S)
        return f"http://{self._host()}:{port}"

    def pause(self, seconds: float) -> None:
        """Waits up to `seconds`. Raises `LaunchFailed` when its task has ended or the run was stopped."""
        self._stopped.wait(seconds)
        ending = self._look().ending
        self._check_not_ended()  # after the look: a service that was stopped meanwhile is not found any more
        if ending is not None:
            raise self._failure(ending.reason())

    def poll(self) -> int | None:
        """None while it starts and runs, else its exit status; as it was a second ago, for the manager is not asked here."""
        if self.phase is Phase.STARTING:
            return None
        if self._state.ending is not None:
            return self._state.ending.status
        return None if self.phase is Phase.LAUNCHED else 0

    def logs(self, tail: int) -> str:
        """The last lines of its output, as they were a few seconds ago; after its end, the last ones."""
        return "\n".join(self._hidden(self._log).splitlines()[-tail:]) if tail > 0 else ""

    def last_lines(self) -> str:
        """What an error quotes of the log, read now."""
        if self.phase is Phase.LAUNCHED:
            self._keep_log()
        return quoted(self.logs(LINES_IN_ERRORS))

    def end(self) -> None:
        """Removes the service, and returns when its container is gone. May be called again, also after it raised
        `ProviderError`, which it does when the manager does not answer."""
        self._stopped.set()
        with self._lock:
            if self._may_exist:
                if self.phase is Phase.LAUNCHED:
                    self._keep_log()
                self._remove()
                self._may_exist = False
            self.phase = Phase.ENDED

    def _remove(self) -> None:
        try:
            self._api.remove_service(self.name)
        except NotFound:
            pass  # somebody else did; its container may be there all the same
        except (DockerException, requests.RequestException) as exc:
            hint = f"Try `docker service rm {self.name}`"
            raise ProviderError(f"The service {self.name} could not be removed: {explanation(exc)}. {hint}") from exc
        deadline = time.monotonic() + self._stop_grace_s + _GONE_S
        while self._containers() and time.monotonic() < deadline:
            time.sleep(_LOOK_S)
        for container in self._containers():
            self._api.remove_container(container["Id"], v=True, force=True)

    def _containers(self) -> list[dict[str, Any]]:
        with engine_asked(self.what, "its containers could not be listed"):
            wanted = {"label": f"com.docker.swarm.service.name={self.name}"}
            found: list[dict[str, Any]] = self._api.containers(all=True, filters=wanted)
            return found

    def _look(self) -> TaskState:
        with engine_asked(self.what, "its task could not be looked at"):
            try:
                self._api.inspect_service(self.name)
                self._state = task_state(self._api.tasks(filters={"service": self.name}))
            except NotFound:
                self._state = TaskState(ending=REMOVED)
        return self._state

    def _watch(self) -> None:
        """Looks until the end, so that asking about it costs nothing."""
        looks = 0
        while self._state.ending is None and not self._stopped.wait(_WATCH_S):
            looks += 1
            try:
                self._look()
            except LaunchFailed as exc:
                logger.debug("%s", str(exc))  # the manager may answer next time
                continue
            if looks % _LOG_EVERY == 0 or self._state.ending is not None:
                self._keep_log()

    def _host(self) -> str:
        """This machine's loopback, or the address of the node that the task runs on."""
        with engine_asked(self.what, "its node could not be looked at"):
            if self._state.node == self._api.info()["Swarm"]["NodeID"]:
                return "127.0.0.1"
            return str(self._api.inspect_node(self._state.node)["Status"]["Addr"])

    def _keep_log(self) -> None:
        try:
            found = self._api.service_logs(self.name, stdout=True, stderr=True, tail="200", is_tty=False)
            self._log = b"".join(found).decode("utf-8", "replace")
        except (DockerException, requests.RequestException):
            return  # what was read before is what is known

    def _check_not_ended(self) -> None:
        if self._stopped.is_set():
            raise self._failure("it was stopped while it was starting")

    def _failure(self, reason: str) -> LaunchFailed:
        return LaunchFailed(self.what, reason, self.last_lines())
