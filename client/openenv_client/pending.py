"""Async first, sync on demand: one set of methods that can be awaited in a running loop and just called outside of one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, Literal, TypeVar

T = TypeVar("T")
Way = Literal["async", "sync"]


class Claims:
    """Which of the two ways a client is used in: the first use decides."""

    def __init__(self) -> None:
        self.way: Way | None = None

    def claim(self, way: Way, *, may_leave_async: bool = False) -> None:
        """Raises RuntimeError if the client is used the other way. `may_leave_async`: nobody awaits it any more."""
        if self.way not in (None, way) and not (may_leave_async and self.way == "async"):
            raise RuntimeError(
                f"EnvClient is already being used in {self.way} mode. "
                "Create a separate client instance when mixing sync and async code."
            )
        self.way = way


class _AutoAsyncResult(Coroutine[Any, Any, T], Generic[T]):
    """The result of a call in a running loop, before it is known whether its caller awaits it.

    Awaited, or handed to asyncio (create_task, gather, wait_for), it is a coroutine. Looked at (a public attribute, an item,
    its truth), it blocks until the result is there, as notebooks without `await` want it. The call is made then, and once.
    """

    def __init__(self, claims: Claims, work: Callable[[], Coroutine[Any, Any, T]], block: Callable[[], T]) -> None:
        self._claims, self._work, self._block = claims, work, block
        self._coroutine: Coroutine[Any, Any, T] | None = None
        self._results: list[T] = []

    def __await__(self) -> Generator[Any, Any, T]:
        return self._claimed().__await__()

    def send(self, value: Any) -> Any:
        """Of a coroutine."""
        return self._claimed().send(value)

    def throw(self, *error: Any) -> Any:
        """Of a coroutine."""
        return self._claimed().throw(*error)

    def close(self) -> None:
        """Of a coroutine: a call that was not made yet never will be."""
        if self._coroutine is not None:
            self._coroutine.close()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name.startswith(("cr_", "gi_")):
            raise AttributeError(name)  # asked for by debuggers, notebooks and asyncio itself, who only want to look
        return getattr(self._resolved(), name)

    def __getitem__(self, key: Any) -> Any:
        return self._resolved()[key]  # type: ignore[index]

    def __bool__(self) -> bool:
        return bool(self._resolved())

    def __repr__(self) -> str:
        return repr(self._results[0]) if self._results else "<_AutoAsyncResult pending>"

    def _claimed(self) -> Coroutine[Any, Any, T]:
        if self._coroutine is None:
            self._claims.claim("async")
            self._coroutine = self._work()
        return self._coroutine

    def _resolved(self) -> T:
        if not self._results:
            self._results.append(self._block())
        return self._results[0]


def dispatched(
    claims: Claims,
    sync_loop: asyncio.AbstractEventLoop | None,
    work: Callable[[], Coroutine[Any, Any, T]],
    block: Callable[[], T],
) -> Any:
    """The call in the way that its caller needs: a coroutine, a pending result, or the result.

    `work` makes the coroutine, `block` runs it on the client's own loop (`sync_loop` while there is one) and claims for sync.
    """
    running = running_loop()
    if claims.way == "sync":
        return work() if running is not None and running is sync_loop else block()
    if running is None:
        return block()
    return work() if claims.way == "async" else _AutoAsyncResult(claims, work, block)


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The loop that runs in this thread, if one does."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
