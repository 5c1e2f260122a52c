"""A ScriptedServer on an event loop in a thread of its own, for clients that block theirs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from types import TracebackType

from testkit.scripted import ScriptedServer

TIMEOUT_S = 10.0


class ServerThread:
    """Use as a context manager. `server` may be read from any thread; its coroutines go through `wait` and `until`."""

    def __init__(self, make: Callable[[], ScriptedServer]) -> None:
        self._make = make
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="scripted server")
        self.server: ScriptedServer
        self.url = ""

    def __enter__(self) -> ServerThread:
        self._thread.start()

        async def start() -> ScriptedServer:
            return await self._make().__aenter__()

        self.server = asyncio.run_coroutine_threadsafe(start(), self._loop).result(TIMEOUT_S)
        self.url = self.server.url
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, traceback: TracebackType | None
    ) -> None:
        leaving = self.server.__aexit__(kind, failure, traceback)
        asyncio.run_coroutine_threadsafe(leaving, self._loop).result(TIMEOUT_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(TIMEOUT_S)
        self._loop.close()

    def call(self, function: Callable[[ScriptedServer], object]) -> None:
        """Call something of the server on its loop, and wait for it."""

        async def call() -> None:
            function(self.server)

        asyncio.run_coroutine_threadsafe(call(), self._loop).result(TIMEOUT_S)

    def wait(self, condition: Callable[[ScriptedServer], bool]) -> None:
        """Block until something that the server counts makes the condition true."""
        waiting = self.server.until(lambda: condition(self.server))
        asyncio.run_coroutine_threadsafe(waiting, self._loop).result(TIMEOUT_S)

    async def until(self, condition: Callable[[ScriptedServer], bool]) -> None:
        """The same, awaited."""
        waiting = self.server.until(lambda: condition(self.server))
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(waiting, self._loop))
