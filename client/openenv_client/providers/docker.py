"""Environments as Docker images: one container is one server."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Mapping
from typing import Any

from .hiding import Hidden

try:
    from .docker_engine import connect
    from .docker_options import ContainerOptions, create_arguments
    from .docker_owner import this_process
    from .docker_reap import reap
    from .docker_run import ContainerRun, inside_a_container
    from .image_server import STOP_GRACE_S, ImageServer
except ModuleNotFoundError as _exc:
    raise ModuleNotFoundError(
        f"Docker providers need the Python package {_exc.name}: pip install 'openenv-client[docker]'", name=_exc.name
    ) from _exc


class LocalDockerProvider(ImageServer[ContainerRun]):
    """One container is one server. See `ImageServer` for the verbs.

    Different on purpose: the engine chooses a port on loopback only; the container has limits and no privileges
    (`ContainerOptions`); an image that is missing is pulled; a server that ends while it starts is told at once; whatever
    fails, no container is left. What a killed process left is removed by the next one that starts a container.
    """

    def __init__(
        self,
        image: str | None = None,
        *,
        env_vars: Mapping[str, str] | None = None,
        stop_grace_s: float = STOP_GRACE_S,
        on_pull: Callable[[str], None] = lambda line: None,
        **options: Any,
    ) -> None:
        """`image`: what `start_container` starts unless told. `options`: those of `ContainerOptions`. `on_pull` is called with
        a line for people, from the thread that starts the container. `stop_grace_s`: seconds between SIGTERM and SIGKILL.

        Raises `RuntimeError` if Docker is not available, `ValueError` or `TypeError` for options that there are not.
        """
        super().__init__(image, env_vars, stop_grace_s, options)
        self._on_pull = on_pull
        self._client = connect()

    def close(self) -> None:
        """Stops the container, and closes the connections to the engine."""
        self.stop_container()
        self._client.close()

    def _make_run(self, image: str, hidden: Hidden) -> ContainerRun:
        return ContainerRun(self._client, image, self.stop_grace_s, hidden)

    def _begin(self, run: ContainerRun, options: ContainerOptions, port: int | None, variables: Mapping[str, str]) -> str:
        reap(self._client)
        facts = run.image_facts(self._on_pull)
        inside = options.container_port or facts.port
        self._hint = _hint(inside, facts.exposed, options.network)
        atexit.register(self.stop_container)
        arguments = create_arguments(
            options,
            env_vars=variables,
            image_variables=facts.variables,
            container_port=inside,
            host_port=port,
            labels=this_process().labels(),
        )
        run.launch(arguments, port)
        url = run.address(inside, options.network)
        run.pause(0)
        return url


def _hint(inside: int, exposed: tuple[int, ...], network: str | None) -> str:
    """What may be the matter with a server that runs but does not answer."""
    others = [str(port) for port in exposed if port != inside]
    named = f", while its image exposes {', '.join(others)}" if others else ""
    hint = f". It was asked on port {inside} of the container{named}: does it listen there, on 0.0.0.0?"
    if inside_a_container() and network is None:
        hint += " This process runs in a container itself: give a network that both are on"
    return hint
