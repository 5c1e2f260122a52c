"""Environments as Docker Swarm services: one service with one task is one server."""

from __future__ import annotations

import atexit
from collections.abc import Mapping
from typing import Any

from ..errors import ProviderError
from .hiding import Hidden

try:
    import docker  # noqa: F401  (first: of two threads that begin with different parts of it, one would meet half a module)
    from docker.types import ContainerSpec, EndpointSpec, Resources, RestartPolicy, ServiceMode, TaskTemplate

    from .docker_engine import connect, engine_asked
    from .docker_image import ImageFacts, look_up
    from .docker_options import UNLESS_SET, ContainerOptions, parse_mount
    from .docker_owner import this_process
    from .image_server import STOP_GRACE_S, ImageServer
    from .memory import parse_size
    from .swarm_reap import reap_services
    from .swarm_run import ServiceRun
except ModuleNotFoundError as _exc:
    raise ModuleNotFoundError(
        f"Docker providers need the Python package {_exc.name}: pip install 'openenv-client[docker]'", name=_exc.name
    ) from _exc

_PLACED_S = 60.0
_LOOPBACK = "127.0.0.1"
_NO_SWARM = (
    "The Docker engine is no Swarm manager. Run `docker swarm init`, or join one as a manager, or allow it here with swarm_init"
)


class DockerSwarmProvider(ImageServer[ServiceRun]):
    """One service with one task is one server. See `ImageServer` for the verbs; `poll` and `logs` are a few seconds old.

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
        super().__init__(image, env_vars, stop_grace_s, options)
        self._client = connect()
        try:
            self._require_manager(swarm_init)
        except BaseException:
            self._client.close()
            raise

    def close(self) -> None:
        """Stops the service, and closes the connections to the engine."""
        self.stop_container()
        self._client.close()

    def _make_run(self, image: str, hidden: Hidden) -> ServiceRun:
        return ServiceRun(self._client, image, self.stop_grace_s, hidden)

    def _begin(self, run: ServiceRun, options: ContainerOptions, port: int | None, variables: Mapping[str, str]) -> str:
        """An image that this engine does not have is pulled by the node. Returns once the task was placed."""
        reap_services(self._client)
        atexit.register(self.stop_container)
        self._create(run, options, port, variables)
        return run.address(_PLACED_S)

    @staticmethod
    def _checked(options: ContainerOptions) -> ContainerOptions:
        default = ContainerOptions()
        for name in ("pids", "network"):
            if getattr(options, name) != getattr(default, name):
                raise ValueError(f"{name} is no option of Swarm services")
        return options

    def _require_manager(self, swarm_init: bool) -> None:
        with engine_asked("a Swarm service", "the engine could not be asked for its Swarm"):
            state = self._client.api.info()["Swarm"]
            if state.get("ControlAvailable"):
                return
            if not swarm_init or state["LocalNodeState"] != "inactive":
                raise ProviderError(f"{_NO_SWARM} (its state: {state['LocalNodeState']})")
            self._client.api.init_swarm(advertise_addr=_LOOPBACK, listen_addr=f"{_LOOPBACK}:2377")

    def _create(self, run: ServiceRun, options: ContainerOptions, port: int | None, variables: Mapping[str, str]) -> None:
        facts = look_up(self._client, run.image) or ImageFacts()
        target = options.container_port or facts.port
        run.create(
            _task(run.image, options, facts, variables, self.stop_grace_s),
            labels=this_process().labels(),
            mode=ServiceMode("replicated", 1),
            endpoint_spec=EndpointSpec(mode="dnsrr", ports=[_published(target, port)]),
        )


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
        mem_limit=None if options.memory is None else parse_size(options.memory),
    )
    return TaskTemplate(container, resources=limits, restart_policy=RestartPolicy("none"))


def _published(target: int, port: int | None) -> dict[str, Any]:
    published = {"Protocol": "tcp", "PublishMode": "host", "TargetPort": target}
    return published if port is None else {**published, "PublishedPort": port}
