"""Environments as Docker Swarm services: one service with one task is one server."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from ..errors import LaunchTimeout, ProviderError
from .hiding import Hidden
from .ready import wait_until_healthy
from .run import Phase, end_after_failure

try:
    import docker  # noqa: F401  (first: of two threads that begin with different parts of it, one would meet half a module)
    from docker.types import ContainerSpec, EndpointSpec, Resources, RestartPolicy, ServiceMode, TaskTemplate
    from docker.utils import parse_bytes

    from .docker_engine import connect, engine_asked
    from .docker_image import ImageFacts, look_up
    from .docker_options import UNLESS_SET, ContainerOptions, check_env_vars, parse_mount
    from .docker_owner import this_process
    from .swarm_reap import reap_services
    from .swarm_run import ServiceRun
except ModuleNotFoundError as _exc:
    raise ModuleNotFoundError(
        f"Docker providers need the Python package {_exc.name}: pip install 'openenv-client[docker]'", name=_exc.name
    ) from _exc

STOP_GRACE_S = 5.0
_PLACED_S = 60.0
_LOOPBACK = "127.0.0.1"
_NO_SWARM = (
    "The Docker engine is no Swarm manager. Run `docker swarm init`, or join one as a manager, or allow it here with swarm_init"
)


class DockerSwarmProvider:
    """A `ContainerProvider` and `Watchable`, with the verbs of OpenEnv's own. Usable again after a stop.

    Different on purpose: one task and no more, since a session lives in one server and Swarm's routing mesh would send its
    connections to any; the port is published by the task's own node, chosen by it, and the mesh is not used. The port is open
    on every interface of that node: Swarm knows no other way. No Swarm is made without being told (`swarm_init`). A task that
    ends is not started again. A service whose owner was killed is removed by the next one that is started.
    """

    def __init__(
        self,
        image: str | None = None,
        *,
        env_vars: Mapping[str, str] | None = None,
        stop_grace_s: float = STOP_GRACE_S,
        swarm_init: bool = False,
        **options: Any,
    ) -> None:
        """`options`: `memory`, `cpus`, `read_only`, `mounts` and `container_port` of `ContainerOptions`. `swarm_init`: make the
        engine a manager, on loopback only, if it is none.

        Raises `RuntimeError` if Docker is not available or no Swarm manager, `ValueError` or `TypeError` for options.
        """
        self.image, self.env_vars, self.stop_grace_s = image, dict(env_vars or {}), stop_grace_s
        self.options = _checked(ContainerOptions().with_changes(options))
        self._lock = threading.Lock()
        self._run: ServiceRun | None = None
        self._client = connect()
        try:
            self._require_manager(swarm_init)
        except BaseException:
            self._client.close()
            raise

    def start_container(
        self,
        image: str | None = None,
        port: int | None = None,
        env_vars: Mapping[str, str] | None = None,
        **options: Any,
    ) -> str:
        """Creates a service and returns its base URL, once its task was placed. It may not be ready yet.

        Arguments and errors as of `LocalDockerProvider.start_container`; `port` is the one on the node. An image that this
        engine does not have is pulled by the node. No service is left when it raises.
        """
        wanted = image or self.image
        if not wanted:
            raise ValueError("start_container needs an image: give it here or to the constructor")
        options.pop("workers", None)
        chosen = _checked(self.options.with_changes(options))
        variables = {**self.env_vars, **(env_vars or {})}
        check_env_vars(variables)
        run = self._new_run(wanted, Hidden(variables))
        try:
            reap_services(self._client)
            atexit.register(self.stop_container)
            self._create(run, chosen, port, variables)
            return run.address(_PLACED_S)
        except BaseException:
            end_after_failure(run.end)
            raise

    def wait_for_ready(self, base_url: str, timeout_s: float = 30.0) -> None:
        """As `LocalDockerProvider.wait_for_ready`. Whatever is raised, no service is left."""
        run = self._run
        if run is None or run.phase is not Phase.LAUNCHED:
            raise ProviderError("DockerSwarmProvider has not been started")
        try:
            wait_until_healthy(base_url, timeout_s, run.pause)
        except TimeoutError as exc:
            lines = run.last_lines()
            end_after_failure(run.end)
            raise LaunchTimeout(run.what, str(exc), lines) from exc
        except BaseException:
            end_after_failure(run.end)
            raise

    def stop_container(self) -> None:
        """Removes the service, and returns when its container is gone. May be called at any time, from any thread."""
        with self._lock:
            run = self._run
        if run is not None:
            run.end()
            atexit.unregister(self.stop_container)

    def close(self) -> None:
        """Stops the service, and closes the connections to the engine."""
        self.stop_container()
        self._client.close()

    def poll(self) -> int | None:
        """None while the task runs; else its exit status, 0 if it was never started. As it was a second ago."""
        return self._run.poll() if self._run else 0

    def logs(self, tail: int = 50) -> str:
        """The last `tail` lines that it printed, as they were a few seconds ago; kept after it was removed."""
        return self._run.logs(tail) if self._run else ""

    def __enter__(self) -> DockerSwarmProvider:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _require_manager(self, swarm_init: bool) -> None:
        with engine_asked("a Swarm service", "the engine could not be asked for its Swarm"):
            state = self._client.api.info()["Swarm"]
            if state.get("ControlAvailable"):
                return
            if not swarm_init or state["LocalNodeState"] != "inactive":
                raise ProviderError(f"{_NO_SWARM} (its state: {state['LocalNodeState']})")
            self._client.api.init_swarm(advertise_addr=_LOOPBACK, listen_addr=f"{_LOOPBACK}:2377")

    def _new_run(self, image: str, hidden: Hidden) -> ServiceRun:
        with self._lock:
            if self._run is not None:
                if self._run.phase is not Phase.ENDED and self._run.poll() is None:
                    raise ProviderError("DockerSwarmProvider is already running")
                self._run.end()
            self._run = ServiceRun(self._client, image, self.stop_grace_s, hidden)
            return self._run

    def _create(self, run: ServiceRun, options: ContainerOptions, port: int | None, variables: Mapping[str, str]) -> None:
        facts = look_up(self._client, run.image) or ImageFacts()
        target = options.container_port or facts.port
        run.create(
            _task(run.image, options, facts, variables, self.stop_grace_s),
            labels=this_process().labels(),
            mode=ServiceMode("replicated", 1),
            endpoint_spec=EndpointSpec(mode="dnsrr", ports=[_published(target, port)]),
        )


def _checked(options: ContainerOptions) -> ContainerOptions:
    """Raises `ValueError` for what a service cannot have."""
    default = ContainerOptions()
    for name in ("pids", "network"):
        if getattr(options, name) != getattr(default, name):
            raise ValueError(f"{name} is no option of Swarm services")
    return options


def _task(
    image: str, options: ContainerOptions, facts: ImageFacts, variables: Mapping[str, str], stop_grace_s: float
) -> TaskTemplate:
    unless_set = {name: value for name, value in UNLESS_SET.items() if name not in facts.variables}
    container = ContainerSpec(
        image,
        env=[f"{name}={value}" for name, value in {**unless_set, **variables}.items()],
        mounts=[parse_mount(inside, outside) for inside, outside in options.mounts.items()],
        stop_grace_period=round(stop_grace_s * 1e9),
        read_only=options.read_only,
        init=True,
        cap_drop=["ALL"],
    )
    limits = Resources(
        cpu_limit=None if options.cpus is None else round(options.cpus * 1e9),
        mem_limit=None if options.memory is None else int(parse_bytes(options.memory)),
    )
    return TaskTemplate(container, resources=limits, restart_policy=RestartPolicy("none"))


def _published(target: int, port: int | None) -> dict[str, Any]:
    published = {"Protocol": "tcp", "PublishMode": "host", "TargetPort": target}
    return published if port is None else {**published, "PublishedPort": port}
