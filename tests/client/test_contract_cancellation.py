"""The client's contract: a cancellation at any await point leaks no connection, task, thread or server."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
from testkit.clients import Add, Count, CountingClient, ImageProvider, ServerProvider
from testkit.scripted import ScriptedServer
from testkit.suspensions import every_await_point
from testkit.threaded import ServerThread


@pytest.fixture(scope="module")
def served() -> Iterator[ServerThread]:
    with ServerThread(ScriptedServer) as server:
        yield server


def sockets() -> int:
    """The open sockets of this process."""
    gc.collect()
    found = 0
    for number in os.listdir("/proc/self/fd"):
        try:
            found += os.readlink(f"/proc/self/fd/{number}").startswith("socket:")
        except FileNotFoundError:
            continue  # the listing's own
    return found


class Account:
    """What there is before, and must be again after."""

    def __init__(self, served: ServerThread) -> None:
        self._served = served
        self._tasks, self._threads = asyncio.all_tasks(), set(threading.enumerate())

    async def check(self) -> None:
        """Nothing is left, now."""
        await self._served.until(lambda server: server.sessions_open == 0)
        left = asyncio.all_tasks() - self._tasks
        if left:
            await asyncio.wait(left, timeout=3)  # what was cancelled ends in the next rounds of the loop
        ours = [each for each in set(threading.enumerate()) - self._threads if "openenv" in each.name]
        for thread in ours:
            await asyncio.to_thread(thread.join, 3)
        assert asyncio.all_tasks() - self._tasks == set()
        assert [each for each in ours if each.is_alive()] == []


async def play(client: CountingClient) -> None:
    await client.reset()
    await client.step(Add(1))
    await client.state()


async def with_children(client: CountingClient) -> None:
    await client.reset()
    await (await client.new_session()).reset()


WORK: dict[str, Callable[[CountingClient], Coroutine[Any, Any, object]]] = {
    "connect": lambda client: client._connect_async(),
    "reset": lambda client: client._reset_async(),
    "reset, step, state": play,
    "new_session": with_children,
    "disconnect": lambda client: _then(client, client._disconnect_async),
    "close": lambda client: _then(client, client._close_async),
}


async def _then(client: CountingClient, end: Callable[[], Coroutine[Any, Any, None]]) -> None:
    await client.reset()
    await end()


@pytest.mark.parametrize("name", WORK)
async def test_a_cancellation_at_any_await_point_leaves_nothing_after_close(name: str, served: ServerThread) -> None:
    account, before = Account(served), sockets()
    clients: list[CountingClient] = []

    def make() -> Coroutine[Any, Any, object]:
        clients.append(CountingClient(served.url))
        return WORK[name](clients[-1])

    points = []
    async for point in every_await_point(make):
        await clients[-1].close()
        await account.check()
        points.append(point)
    assert len(points) >= 3
    await clients[-1].close()
    await account.check()
    assert sockets() <= before


async def test_a_cancelled_connect_leaves_nothing_even_without_close(served: ServerThread) -> None:
    account = Account(served)
    async for _ in every_await_point(lambda: CountingClient(served.url)._connect_async()):
        await account.check()


@pytest.mark.parametrize("name", ["connect", "reset, step, state", "new_session"])
async def test_a_close_at_any_await_point_of_another_call_leaves_nothing(name: str, served: ServerThread) -> None:
    account = Account(served)
    clients: list[CountingClient] = []

    def make() -> Coroutine[Any, Any, object]:
        clients.append(CountingClient(served.url))
        return WORK[name](clients[-1])

    async for _ in every_await_point(make, instead=lambda: clients[-1]._close_async()):
        await clients[-1].close()  # what went on after the first close: steps of a program that did not know
        await account.check()
    await clients[-1].close()


@pytest.mark.parametrize("family", [ServerProvider, ImageProvider])
async def test_a_close_at_any_await_point_of_a_start_leaves_no_server(family: Any, served: ServerThread) -> None:
    account = Account(served)
    made: list[tuple[CountingClient, Any]] = []

    def make() -> Coroutine[Any, Any, object]:
        provider = family(served.url)
        made.append((CountingClient(provider=provider), provider))
        return made[-1][0]._connect_async()

    async for _ in every_await_point(make, instead=lambda: made[-1][0]._close_async()):
        assert made[-1][1].running == 0
        await account.check()


@pytest.mark.parametrize("family", [ServerProvider, ImageProvider])
async def test_a_cancellation_of_a_start_at_any_await_point_leaves_no_server(family: Any, served: ServerThread) -> None:
    account = Account(served)
    providers: list[Any] = []

    def make() -> Coroutine[Any, Any, object]:
        providers.append(family(served.url))
        return CountingClient(provider=providers[-1])._connect_async()

    async for _ in every_await_point(make):
        assert providers[-1].running == 0
        await account.check()
    assert providers[-1].running == 1  # the run that nobody cancelled


async def test_a_cancellation_of_a_handle_at_any_await_point_leaves_no_server(served: ServerThread) -> None:
    account = Account(served)
    providers: list[ImageProvider] = []

    async def start() -> object:
        providers.append(ImageProvider(served.url))
        return await CountingClient.from_docker_image("x", providers[-1])

    async for _ in every_await_point(start):
        assert providers[-1].running == 0
        await account.check()
    assert providers[-1].running == 1


@pytest.mark.parametrize("name", ["reset", "reset, step, state"])
async def test_a_client_can_be_used_again_after_a_cancellation_anywhere(name: str, served: ServerThread) -> None:
    clients: list[CountingClient] = []

    def make() -> Coroutine[Any, Any, object]:
        clients.append(CountingClient(served.url))
        return WORK[name](clients[-1])

    async for _ in every_await_point(make):
        assert (await clients[-1].reset()).observation == Count(0)
        assert (await clients[-1].step(Add(3))).observation == Count(3)
        await clients[-1].close()
    await clients[-1].close()


def test_an_interrupted_sync_call_is_cancelled_and_the_client_goes_on(served: ServerThread) -> None:
    with CountingClient(served.url).sync() as sync:
        sync.reset()
        served.call(lambda server: server.hold_reply())
        interrupt = threading.Thread(target=_interrupt_when, args=(served, served.server.requests.copy()))
        interrupt.start()
        with pytest.raises(KeyboardInterrupt):
            sync.step(Add(1))
        interrupt.join(5)
        served.call(lambda server: server.release_reply())
        assert sync.reset().observation == Count(0)


def _interrupt_when(served: ServerThread, before: list[Any]) -> None:
    served.wait(lambda server: len(server.requests) > len(before))
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
