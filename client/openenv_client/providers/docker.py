"""Environments as Docker images: one container is one server."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from ..errors import LaunchTimeout, ProviderError
from .hiding import Hidden
from .ready import wait_until_healthy
from .run import Phase, end_after_failure

try:
    from .docker_engine import connect
    from .docker_options import ContainerOptions, check_env_vars, create_arguments
    from .docker_owner import this_process
    from .docker_reap import reap
    from .docker_run import ContainerRun, inside_a_container
except ModuleNotFoundError as _exc:
    raise ModuleNotFoundError(
        f"Docker providers need the Python package {_exc.name}: pip install 'openenv-client[docker]'", name=_exc.name
    ) from _exc

STOP_GRACE_S = 5.0


class LocalDockerProvider:
    """A `ContainerProvider` and `Watchable`, with the verbs and arguments of OpenEnv's own. Usable again after a stop.

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
        self.image, self.env_vars = image, dict(env_vars or {})
        self.options = ContainerOptions().with_changes(options)
        self.stop_grace_s = stop_grace_s
        self._on_pull = on_pull
        self._hint = ""
        self._lock = threading.Lock()
        self._run: ContainerRun | None = None
        self._client = connect()

    def start_container(
        self,
        image: str | None = None,
        port: int | None = None,
        env_vars: Mapping[str, str] | None = None,
        **options: Any,
    ) -> str:
        """Starts a container and returns its base URL. It may not be ready yet.

        `port` is the one on loopback (default: any free one), not the server's own: that is the option `container_port`.
        `env_vars` are added to the constructor's; `options` replace the constructor's. `workers`, which OpenEnv's own clients
        may pass, is for the image to decide and ignored. Raises `ProviderError` (a `RuntimeError`; `LaunchFailed` with the
        last lines if there are any) when the image cannot be had, the engine refuses, the port is taken or a container of
        this provider runs already; `ValueError` or `TypeError` for arguments. No container is left then.
        """
        wanted = image or self.image
        if not wanted:
            raise ValueError("start_container needs an image: give it here or to the constructor")
        options.pop("workers", None)
        chosen = self.options.with_changes(options)
        variables = {**self.env_vars, **(env_vars or {})}
        check_env_vars(variables)
        run = self._new_run(wanted, Hidden(variables))
        try:
            return self._launch(run, chosen, port, variables)
        except BaseException:
            end_after_failure(run.end)
            raise

    def wait_for_ready(self, base_url: str, timeout_s: float = 30.0) -> None:
        """Returns once `/health` answers 200, for at most `timeout_s` seconds.

        Raises `LaunchTimeout` (a `TimeoutError`) when that takes too long and `LaunchFailed` (a `RuntimeError`) as soon as
        the container ends or is stopped meanwhile, both with its last lines. Whatever is raised, no container is left.
        """
        run = self._run
        if run is None or run.phase is not Phase.LAUNCHED:
            raise ProviderError("LocalDockerProvider has not been started")
        try:
            wait_until_healthy(base_url, timeout_s, run.pause)
        except TimeoutError as exc:
            end_after_failure(run.end)
            raise LaunchTimeout(run.what, f"{exc}{self._hint}", run.last_lines()) from exc
        except BaseException:
            end_after_failure(run.end)
            raise

    def stop_container(self) -> None:
        """Ends the container and removes it, and returns when it is gone. May be called at any time, from any thread.

        Raises `ProviderError` when the engine does not let it go; then it may be called again.
        """
        with self._lock:
            run = self._run
        if run is not None:
            run.end()
            atexit.unregister(self.stop_container)

    def close(self) -> None:
        """Stops the container, and closes the connections to the engine."""
        self.stop_container()
        self._client.close()

    def poll(self) -> int | None:
        """None while the container runs; else its exit status (-N: ended by signal N), 0 if it was never started."""
        return self._run.poll() if self._run else 0

    def logs(self, tail: int = 50) -> str:
        """The last `tail` lines that it printed (before: of the pull); kept after it was removed, until the next start."""
        return self._run.logs(tail) if self._run else ""

    def __enter__(self) -> LocalDockerProvider:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _new_run(self, image: str, hidden: Hidden) -> ContainerRun:
        with self._lock:
            if self._run is not None:
                if self._run.phase is not Phase.ENDED and self._run.poll() is None:
                    raise ProviderError("LocalDockerProvider is already running")
                self._run.end()
            self._run = ContainerRun(self._client, image, self.stop_grace_s, hidden)
            return self._run

    def _launch(self, run: ContainerRun, options: ContainerOptions, port: int | None, variables: Mapping[str, str]) -> str:
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
