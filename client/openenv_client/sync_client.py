"""`SyncEnvClient`: an `EnvClient` with blocking methods, on an event loop of its own."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from openenv_client.pending import running_loop
from openenv_client.results import StepResult, Tool
from openenv_client.threads import LoopThread

if TYPE_CHECKING:
    from openenv_client.env_client import EnvClient

ActT = TypeVar("ActT")
ObsT = TypeVar("ObsT")
StateT = TypeVar("StateT")
T = TypeVar("T")


class SyncEnvClient(Generic[ActT, ObsT, StateT]):
    """Blocking methods for one async client, for any thread; calls from several take turns.

    The loop runs in a daemon thread from the first call to `close`, after which the client can be used again. Use `with`, or
    `close`: what the garbage collector finds is only cleaned up as well as can be.
    """

    def __init__(self, async_client: EnvClient[ActT, ObsT, StateT], thread: LoopThread | None = None) -> None:
        """`thread`: the loop on which the async client is connected already, if it is. All sync clients of one async client
        share a loop, and closing one closes them all."""
        first = async_client._sync_client
        self._async = async_client
        self._thread: LoopThread = thread or (LoopThread() if first is None else first._thread)
        if first is None:
            async_client._sync_client = self
        self._children: set[SyncEnvClient[ActT, ObsT, StateT]] = set()
        self._siblings: set[SyncEnvClient[ActT, ObsT, StateT]] | None = None

    def __repr__(self) -> str:
        return f"<SyncEnvClient of {self._async!r}>"

    @property
    def async_client(self) -> EnvClient[ActT, ObsT, StateT]:
        """The client underneath."""
        return self._async

    @property
    def _loop(self) -> asyncio.AbstractEventLoop | None:
        """The loop that runs the async client, None while there is none."""
        return self._thread.loop

    def connect(self) -> SyncEnvClient[ActT, ObsT, StateT]:
        """As EnvClient.connect. Returns this client."""
        self._call(lambda: self._async.connect())
        return self

    def disconnect(self) -> None:
        """As EnvClient.disconnect."""
        self._call(lambda: self._async.disconnect())

    def reset(self, **kwargs: Any) -> StepResult[ObsT]:
        """As EnvClient.reset."""
        result: StepResult[ObsT] = self._call(lambda: self._async.reset(**kwargs))
        return result

    def step(self, action: ActT, **kwargs: Any) -> StepResult[ObsT]:
        """As EnvClient.step; `timeout_s` bounds this call."""
        result: StepResult[ObsT] = self._call(lambda: self._async.step(action, **kwargs))
        return result

    def state(self) -> StateT:
        """As EnvClient.state."""
        state: StateT = self._call(lambda: self._async.state())
        return state

    def list_tools(self, use_cache: bool = True) -> list[Tool]:
        """As EnvClient.list_tools."""
        tools: list[Tool] = self._call(self._async.list_tools if use_cache else lambda: self._async.list_tools(use_cache=False))
        return tools

    def call_tool(self, *name: str, **kwargs: Any) -> Any:
        """As EnvClient.call_tool."""
        return self._call(lambda: self._async.call_tool(*name, **kwargs))

    def get_tool(self, name: str) -> Tool | None:
        """As EnvClient.get_tool."""
        tool: Tool | None = self._call(lambda: self._async.get_tool(name))
        return tool

    def has_tool(self, name: str) -> bool:
        """As EnvClient.has_tool."""
        return bool(self._call(lambda: self._async.has_tool(name)))

    def new_session(self) -> SyncEnvClient[ActT, ObsT, StateT]:
        """As EnvClient.new_session; the new client has a loop of its own and is closed with this one at the latest."""
        child = self._run(self._async._make_child).sync()
        child._siblings = self._children
        self._children.add(child)
        try:
            return child.connect()
        except BaseException:
            child.close()
            raise

    def close(self) -> None:
        """As EnvClient.close; the loop and its thread end too."""
        try:
            for child in tuple(self._children):
                child.close()
        finally:
            try:
                self._run(self._async._close_async)
            finally:
                self._thread.stop()
                if self._siblings is not None:
                    self._siblings.discard(self)

    def _run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine of the async client on its loop, and block for the result."""
        self._async._claims.claim("sync", may_leave_async=running_loop() is None)
        return self._thread.run(work)

    def __enter__(self) -> SyncEnvClient[ActT, ObsT, StateT]:
        return self.connect()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        if "_thread" in self.__dict__:
            self._thread.abandon(self._async._close_async)

    def __getattr__(self, name: str) -> Any:
        """Everything else is the async client's; its coroutine methods block here."""
        if name in ("_async", "_thread"):
            raise AttributeError(name)  # asked for before __init__ ran, by copy or pickle
        found = getattr(self._async, name)
        if not inspect.iscoroutinefunction(found):
            return found

        @wraps(found)
        def blocking(*args: Any, **kwargs: Any) -> Any:
            return self._run(lambda: found(*args, **kwargs))

        return blocking

    def _call(self, call: Callable[[], Any]) -> Any:
        """A public method of the client, called on the loop: a subclass may have replaced it, by a coroutine or a plain one."""

        async def work() -> Any:
            result = call()
            return await result if inspect.isawaitable(result) else result

        return self._run(work)
