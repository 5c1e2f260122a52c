"""`HTTPEnvClient`: the blocking client of openenv-core 0.1, for servers of any version.

Servers of 0.1.x have one environment that all share, and HTTP only. Newer ones answer the same HTTP routes with a new
environment for each request, so that no second step could follow a first: there this client keeps one session on `/ws`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from importlib import import_module
from types import TracebackType
from typing import Any, Generic, TypeVar

from openenv_client.bootstrap import Bootstrap, docker_recipe
from openenv_client.env_client import EnvClient
from openenv_client.errors import ConnectFailed, OpenEnvError, WebSocketRefused
from openenv_client.modes import Mode
from openenv_client.results import StepResult
from openenv_client.urls import http_url, shown
from openenv_client.wire import Wire, WireOptions, open_wire

ActT = TypeVar("ActT")
ObsT = TypeVar("ObsT")
ClientT = TypeVar("ClientT", bound="HTTPEnvClient[Any, Any]")


class HTTPEnvClient(ABC, Generic[ActT, ObsT]):
    """Every method blocks. Subclasses have the three hooks of EnvClient; errors are those of EnvClient.

    A step that got no answer in time is waited for by the next one, which raises LateReply with its outcome.
    """

    def __init__(
        self,
        base_url: str,
        request_timeout_s: float = 15.0,
        default_headers: Mapping[str, str] | None = None,
        provider: Any = None,
    ) -> None:
        """`request_timeout_s` bounds each call, `default_headers` go with each request; the provider is stopped by `close`.

        Raises ValueError for what is no server's URL. Nothing is connected yet.
        """
        self._client: _EitherWay[ActT, ObsT] = _EitherWay(self, base_url, request_timeout_s, default_headers, provider)

    @classmethod
    def from_docker_image(cls: type[ClientT], image: str, provider: Any = None, **kwargs: Any) -> ClientT:
        """A client with a container of its own, started now. `kwargs` are arguments of the provider's `start_container`.

        Raises what the provider raises, or ConnectionError; the container is stopped then.
        """

        def make(**arguments: Any) -> _EitherWay[Any, Any]:
            return cls(**arguments)._client

        started = Bootstrap(make, lambda: docker_recipe(image, provider, kwargs)).sync().async_client
        assert isinstance(started, _EitherWay) and isinstance(started.owner, cls), "it is what `make` made"
        return started.owner

    def reset(self, **kwargs: Any) -> StepResult[ObsT]:
        """Start an episode. Servers of 0.1.x ignore arguments."""
        return self._client.sync().reset(**kwargs)

    def step(self, action: ActT) -> StepResult[ObsT]:
        """Carry out one action."""
        return self._client.sync().step(action)

    def state(self) -> Any:
        """The environment's state."""
        return self._client.sync().state()

    def close(self) -> None:
        """End the session and stop the provider. The client can be used again."""
        self._client.sync().close()

    def __enter__(self: ClientT) -> ClientT:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @abstractmethod
    def _step_payload(self, action: ActT) -> dict[str, Any]:
        """See EnvClient."""

    @abstractmethod
    def _parse_result(self, payload: dict[str, Any]) -> StepResult[ObsT]:
        """See EnvClient."""

    @abstractmethod
    def _parse_state(self, payload: dict[str, Any]) -> Any:
        """See EnvClient."""


class _EitherWay(EnvClient[ActT, ObsT, Any]):
    """The session underneath: on `/ws` where there is one, else over HTTP. Its hooks are its owner's."""

    def __init__(
        self,
        owner: HTTPEnvClient[ActT, ObsT],
        base_url: str,
        timeout_s: float,
        headers: Mapping[str, str] | None,
        provider: Any,
    ) -> None:
        super().__init__(
            base_url,
            message_timeout_s=timeout_s,
            websocket_ping_interval_s=None,  # its servers may compute in the thread that would answer
            provider=provider,
            mode=Mode.SIMULATION.value,
            headers=headers,
            late_reply_s=timeout_s,
        )
        self.owner = owner

    def _step_payload(self, action: ActT) -> dict[str, Any]:
        return self.owner._step_payload(action)

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[ObsT]:
        return self.owner._parse_result(payload)

    def _parse_state(self, payload: dict[str, Any]) -> Any:
        return self.owner._parse_state(payload)

    async def _open_wire(self, options: WireOptions) -> Wire:
        try:
            return await open_wire(Mode.SIMULATION, options)
        except ConnectFailed as error:
            if not isinstance(error.__cause__, WebSocketRefused):
                raise
        return await _over_http(options)


async def _over_http(options: WireOptions) -> Wire:
    """Imported late, as `open_wire` does, and for the same reason."""
    try:
        session = await import_module("openenv_client.http").HttpSession.open(
            options.base_url,
            connect_timeout_s=options.connect_timeout_s,
            max_message_bytes=options.max_message_bytes,
            headers=options.headers,
        )
    except OpenEnvError as error:
        raise ConnectFailed(shown(http_url(options.base_url)), error) from error
    wire: Wire = import_module("openenv_client.simulation").SessionWire(session, options.late_reply_s)
    return wire
