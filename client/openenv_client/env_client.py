"""`EnvClient`: one environment session for user code, async first and sync on demand."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, nullcontext
from types import TracebackType
from typing import Any, Generic, NoReturn, TypeVar

from openenv_client.bootstrap import Bootstrap, docker_recipe, space_recipe
from openenv_client.bounds import seconds
from openenv_client.children import child_arguments
from openenv_client.errors import LateReply
from openenv_client.link import Link
from openenv_client.modes import Mode, chosen_mode
from openenv_client.pending import Claims, dispatched
from openenv_client.progress import Report
from openenv_client.results import StepResult, Tool
from openenv_client.served import Server
from openenv_client.sync_client import SyncEnvClient
from openenv_client.threads import finish
from openenv_client.wire import Wire, WireOptions, open_wire

logger = logging.getLogger(__name__)

ActT = TypeVar("ActT")
ObsT = TypeVar("ObsT")
StateT = TypeVar("StateT")
T = TypeVar("T")
ClientT = TypeVar("ClientT", bound="EnvClient[Any, Any, Any]")


class EnvClient(ABC, Generic[ActT, ObsT, StateT]):
    """A client of one environment session. Subclasses say how actions, results and states look (three hooks).

    In a running event loop the methods are awaited; where none runs they block and return the result. The first use decides
    for one of the two; `sync()` is the same client with blocking methods that type checkers understand. The session is opened
    by the first call, or by `connect` or `with`.

    What goes wrong is raised: ConnectionError (no connection), RuntimeError (the environment's or server's error; EpisodeLost
    when the episode is gone, until `reset`), TimeoutError (no answer in time; the outcome is unknown). See `errors`.
    """

    def __init__(
        self,
        base_url: str | None = None,
        connect_timeout_s: float = 10.0,
        message_timeout_s: float = 60.0,
        max_message_size_mb: float = 100.0,
        websocket_ping_interval_s: float | None = 20.0,
        websocket_ping_timeout_s: float | None = 20.0,
        provider: Any = None,
        mode: str | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        late_reply_s: float | None = None,
        progress: Report | None = None,
    ) -> None:
        """Nothing is connected or started yet.

        `base_url`: of the server or of the gateway's environment (http, https, ws, wss, or a bare host). `provider`: what
        starts the server when there is no URL, and is stopped at close in any case. `websocket_ping_*`: None switches pings
        off, where a proxy drops them or steps are so long that a server answers none. `headers` go with every handshake and
        request. `mode`: `simulation` or `production`, else OPENENV_CLIENT_MODE, else `simulation`. `late_reply_s`: how long the
        call after a timeout waits for the late reply (see LateReply); without it a timeout ends the episode. `progress` hears
        what a start waits for (a terminal shows it by itself).

        Raises ValueError: neither URL nor provider, no such mode, no server's URL, a time that is none.
        """
        self._server = Server(base_url, provider, progress)
        self.__mode = chosen_mode(mode)
        self._claims = Claims()
        self._connect_timeout = seconds("connect_timeout_s", connect_timeout_s)
        self._message_timeout = seconds("message_timeout_s", message_timeout_s)
        self._max_message_size_mb = max_message_size_mb
        self._ping_interval, self._ping_timeout = websocket_ping_interval_s, websocket_ping_timeout_s
        self._headers = headers
        self._late_reply = None if late_reply_s is None else seconds("late_reply_s", late_reply_s)
        self._link = Link(self._opened_wire)
        self._child_clients: set[EnvClient[Any, Any, Any]] = set()
        self._siblings: set[EnvClient[Any, Any, Any]] | None = None
        self._tools_cache: list[Tool] | None = None
        self._sync_client: SyncEnvClient[ActT, ObsT, StateT] | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.base_url or 'not started'} {self._link!r}>"

    @property
    def base_url(self) -> str | None:
        """The server's URL without a trailing slash. None until an owned provider has started, and again after close."""
        return self._server.base_url

    @property
    def _mode(self) -> str:
        return self.__mode.value

    @_mode.setter
    def _mode(self, value: object) -> NoReturn:
        raise AttributeError("Cannot modify mode after initialization")

    @abstractmethod
    def _step_payload(self, action: ActT) -> dict[str, Any]:
        """The action as the JSON object that the environment takes."""

    @abstractmethod
    def _parse_result(self, payload: dict[str, Any]) -> StepResult[ObsT]:
        """The result in `{"observation": {...}, "reward": ..., "done": ...}`, as servers answer reset and step."""

    @abstractmethod
    def _parse_state(self, payload: dict[str, Any]) -> StateT:
        """The state in the object that servers answer."""

    def connect(self) -> Any:
        """Start the provider if the client owns one that does not run, and connect. Returns the client.

        Raises ConnectionError, or what the provider raises; the provider is stopped then.
        """
        return self._dispatch(self._connect_async)

    def disconnect(self) -> Any:
        """End the environment session and its episode; the provider and children go on."""
        return self._dispatch(self._disconnect_async)

    def reset(self, **kwargs: Any) -> Any:
        """Start an episode; `kwargs` are the environment's arguments. Returns a StepResult. Recovers a lost episode."""
        return self._dispatch(lambda: self._reset_async(**kwargs))

    def step(self, action: ActT, *, timeout_s: float | None = None, **kwargs: Any) -> Any:
        """Carry out one action. Returns a StepResult. `timeout_s` bounds this call instead of `message_timeout_s`; other
        arguments are ignored, as OpenEnv's client does."""
        return self._dispatch(lambda: self._step_async(action, timeout_s=timeout_s, **kwargs))

    def state(self) -> Any:
        """The environment's state, as `_parse_state` makes it."""
        return self._dispatch(self._state_async)

    def list_tools(self, use_cache: bool = True) -> Any:
        """The environment's tools (list of Tool); remembered, unless `use_cache` is False. A failure is raised."""
        return self._dispatch(lambda: self._list_tools_async(use_cache))

    def call_tool(self, name: str = "", /, **kwargs: Any) -> Any:
        """What the tool `name` returns for these arguments. Raises ToolFailed (a RuntimeError).

        The name may be a keyword too, as with OpenEnv's client; a tool that has an argument `name` needs it first.
        """
        if not name and "name" not in kwargs:
            raise TypeError("call_tool needs the name of a tool")
        tool = name or kwargs.pop("name")
        return self._dispatch(lambda: self._call_tool_async(tool, kwargs))

    def get_tool(self, name: str) -> Any:
        """The Tool of that name, None if there is none."""
        return self._dispatch(lambda: self._get_tool_async(name))

    def has_tool(self, name: str) -> Any:
        """Whether there is a tool of that name."""
        return self._dispatch(lambda: self._has_tool_async(name))

    def new_session(self) -> Any:
        """Another session with the same server: a connected client of the same class, closed with this one at the latest."""
        return self._dispatch(self._new_session_async, lambda: self.sync().new_session().async_client)

    def close(self) -> Any:
        """End the children, the session and the provider, in this order, also when cancelled. The client can be used again."""
        return self._dispatch(self._close_async, lambda: self.sync().close())

    def sync(self) -> SyncEnvClient[ActT, ObsT, StateT]:
        """The client with blocking methods, always the same object."""
        return self._sync_client or SyncEnvClient(self)

    async def __aenter__(self: ClientT) -> ClientT:
        self._claims.claim("async")
        await self.connect()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __enter__(self: ClientT) -> ClientT:
        self.sync().connect()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.sync().close()

    @classmethod
    def from_docker_image(
        cls: type[ClientT], image: str, provider: Any = None, *, progress: Report | None = None, **kwargs: Any
    ) -> Bootstrap[ClientT]:
        """A client with a container of its own; nothing starts before the handle is used (see Bootstrap).

        `kwargs` are arguments of the provider's `start_container`. Without a provider: this machine's Docker.
        """
        return Bootstrap(cls, lambda: docker_recipe(image, provider, kwargs), progress)

    @classmethod
    def from_env(
        cls: type[ClientT],
        repo_id: str,
        *,
        use_docker: bool = True,
        provider: Any = None,
        progress: Report | None = None,
        **kwargs: Any,
    ) -> Bootstrap[ClientT]:
        """A client with a server of its own for a Hugging Face Space `OWNER/NAME` (see Bootstrap).

        `use_docker`: the Space's image (`tag`, and other arguments of `start_container`); else uv, from its git repository or
        from `project_path`, with the arguments of UVProvider. `port`, `env_vars` and `workers` are arguments of the start.
        """
        return Bootstrap(cls, lambda: space_recipe(repo_id, use_docker, provider, kwargs), progress)

    async def _connect_async(self: ClientT) -> ClientT:
        await self._link.connect()
        return self

    async def _disconnect_async(self) -> None:
        await self._link.close()

    async def _reset_async(self, **kwargs: Any) -> StepResult[ObsT]:
        patience_s = self._message_timeout
        payload = await self._link.reset(lambda wire: wire.reset(kwargs, patience_s), patience_s)
        return self._parse_result(payload)

    async def _step_async(self, action: ActT, *, timeout_s: float | None = None, **_: Any) -> StepResult[ObsT]:
        bound_s = self._message_timeout if timeout_s is None else seconds("timeout_s", timeout_s)
        payload = self._step_payload(action)
        return self._parse_result(await self._on_wire(lambda wire: wire.step(payload, bound_s)))

    async def _state_async(self) -> StateT:
        payload = await self._link.call(lambda wire: wire.state(self._message_timeout), acts=False)
        return self._parse_state(payload)

    async def _list_tools_async(self, use_cache: bool = True) -> list[Tool]:
        if self._tools_cache is None or not use_cache:
            self._tools_cache = await self._on_wire(lambda wire: wire.list_tools(self._message_timeout), acts=False)
        return list(self._tools_cache)

    async def _get_tool_async(self, name: str) -> Tool | None:
        return next((tool for tool in await self._list_tools_async() if tool.name == name), None)

    async def _has_tool_async(self, name: str) -> bool:
        return await self._get_tool_async(name) is not None

    async def _call_tool_async(self, name: str, arguments: Mapping[str, Any]) -> Any:
        return await self._on_wire(lambda wire: wire.call_tool(name, arguments, self._message_timeout))

    async def _on_wire(self, call: Callable[[Wire], Coroutine[Any, Any, T]], *, acts: bool = True) -> T:
        try:
            return await self._link.call(call, acts=acts)
        except LateReply as late:
            if late.payload is not None:
                late.result = self._parse_result(dict(late.payload))
            raise

    async def _new_session_async(self: ClientT) -> ClientT:
        child = await self._make_child()
        child._siblings = self._child_clients
        try:
            await child.connect()
        except BaseException:
            await child._close_after_failure()
            raise
        return child

    async def _make_child(self: ClientT) -> ClientT:
        """An unconnected client of the same class for the same server, which is started if need be."""
        starts = self.base_url is None
        async with self._link.turn() if starts else nullcontext():
            await self._server.ensure()
        try:
            return type(self)(**child_arguments(type(self), self._arguments()))
        except BaseException:
            if starts:
                await self._server.stop_after_failure()
            raise

    def _arguments(self) -> dict[str, Any]:
        """What a client of the same server is made with."""
        return {
            "base_url": self.base_url,
            "connect_timeout_s": self._connect_timeout,
            "message_timeout_s": self._message_timeout,
            "max_message_size_mb": self._max_message_size_mb,
            "websocket_ping_interval_s": self._ping_interval,
            "websocket_ping_timeout_s": self._ping_timeout,
            "mode": self._mode,
            "headers": self._headers,
            "late_reply_s": self._late_reply,
        }

    async def _close_async(self) -> None:
        await finish(self._close_in_order())

    async def _close_after_failure(self) -> None:
        """Close; what fails is only logged, since another failure is about to be raised. The provider's stop is remembered."""
        try:
            await self._close_async()
        except Exception as error:  # noqa: BLE001
            logger.warning("closing %r after a failure failed too: %s", self, error)

    async def _close_in_order(self) -> None:
        async with AsyncExitStack() as last_first:
            last_first.push_async_callback(self._server.stop)
            last_first.push_async_callback(self._link.close)
            for child in tuple(self._child_clients):
                last_first.push_async_callback(child._close_async)
        self._tools_cache = None
        if self._siblings is not None:
            self._siblings.discard(self)

    async def _opened_wire(self) -> Wire:
        """A connected wire, for the link. Whatever fails, the provider is stopped: its server cannot be reached."""
        starts = self.base_url is None
        base_url = await self._server.ensure()
        try:
            wire = await self._open_wire(self._wire_options(base_url))
        except BaseException as error:
            if starts or isinstance(error, Exception):
                await self._server.stop_after_failure()
            raise
        if self._siblings is not None:
            self._siblings.add(self)
        return wire

    async def _open_wire(self, options: WireOptions) -> Wire:
        return await open_wire(Mode(self._mode), options)

    def _wire_options(self, base_url: str) -> WireOptions:
        return WireOptions(
            base_url=base_url,
            connect_timeout_s=self._connect_timeout,
            message_timeout_s=self._message_timeout,
            max_message_bytes=int(self._max_message_size_mb * 2**20),
            ping_interval_s=self._ping_interval,
            ping_timeout_s=self._ping_timeout,
            headers=self._headers,
            late_reply_s=self._late_reply,
        )

    def _dispatch(self, work: Callable[[], Coroutine[Any, Any, T]], block: Callable[[], T] | None = None) -> Any:
        sync_loop = None if self._sync_client is None else self._sync_client._loop
        return dispatched(self._claims, sync_loop, work, block or (lambda: self.sync()._run(work)))
