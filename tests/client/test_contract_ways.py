"""The client's contract: async first, sync on demand; the sync client; nothing left behind."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from testkit.clients import Add, Count, CountingClient
from testkit.scripted import ScriptedServer
from testkit.threaded import ServerThread

from openenv_client import EnvClient, GenericEnvClient, StepResult, SyncEnvClient
from openenv_client.errors import EpisodeLost
from openenv_client.threads import LoopThread

IN_SYNC = (
    "EnvClient is already being used in sync mode. "
    "Create a separate client instance when mixing sync and async code."
)
IN_ASYNC = IN_SYNC.replace("sync mode", "async mode")


@pytest.fixture(scope="module")
def served() -> Iterator[ServerThread]:
    """A counting server in a thread of its own: sync clients block theirs."""
    with ServerThread(ScriptedServer) as server:
        yield server


@pytest.fixture(autouse=True)
def nothing_is_left_behind() -> Iterator[None]:
    """No test may leave a thread: each has to close its clients."""
    before = set(threading.enumerate())
    yield
    gc.collect()
    for thread in set(threading.enumerate()) - before:
        thread.join(5)
    assert set(threading.enumerate()) - before == set()


async def test_in_a_running_loop_calls_are_awaited(served: ServerThread) -> None:
    client = CountingClient(served.url)
    assert await client.connect() is client
    assert (await client.reset()).observation == Count(0)
    assert await client.step(Add(2)) == StepResult(Count(2), 2.0, False)
    assert await client.state() == 2
    await client.close()


def test_without_a_loop_calls_run_to_the_result(served: ServerThread) -> None:
    client = CountingClient(served.url)
    assert client.connect() is client
    assert client.reset().observation == Count(0)
    assert client.step(Add(2)).reward == 2.0
    assert client.state() == 2
    assert client.new_session().reset().observation == Count(0)
    client.close()


async def test_an_async_with_block_connects_and_closes(served: ServerThread) -> None:
    async with CountingClient(served.url) as client:
        assert (await client.reset()).observation == Count(0)
    await served.until(lambda server: server.sessions_open == 0)


def test_a_with_block_connects_and_closes(served: ServerThread) -> None:
    with CountingClient(served.url) as client:
        assert isinstance(client, CountingClient)
        assert client.reset().observation == Count(0)


async def test_a_call_that_nobody_claimed_yet_is_pending_and_says_so(served: ServerThread) -> None:
    client = GenericEnvClient(served.url)
    pending = client.reset()
    assert repr(pending) == "<_AutoAsyncResult pending>"
    assert (await pending).observation["count"] == 0
    await client.close()


@pytest.mark.parametrize("look", [lambda pending: pending.observation["count"], bool, lambda pending: pending.done])
async def test_a_pending_call_is_made_when_it_is_looked_at(served: ServerThread, look: Callable[[Any], Any]) -> None:
    client = GenericEnvClient(served.url)
    pending = client.reset()
    assert look(pending) in (0, True, False)
    assert repr(pending).startswith("StepResult(observation={'count': 0")
    assert client.step({"add": 3}).reward == 3.0  # claimed for sync: results come at once
    client.close()


async def test_a_pending_state_can_be_used_as_the_dictionary_that_it_is(served: ServerThread) -> None:
    client = GenericEnvClient(served.url)
    assert client.state()["count"] == 0
    client.close()


@pytest.mark.parametrize("name", ["_repr_html_", "__iter__", "cr_code"])
async def test_what_only_wants_to_show_a_pending_call_does_not_make_it(served: ServerThread, name: str) -> None:
    client = GenericEnvClient(served.url)
    pending = client.reset()
    assert not hasattr(pending, name)
    assert repr(pending) == "<_AutoAsyncResult pending>"


async def test_a_pending_call_is_made_once(served: ServerThread) -> None:
    client = GenericEnvClient(served.url)
    client.reset().done  # noqa: B018  (looking at it is what makes the call)
    pending = client.step({"add": 1})
    assert (pending.reward, pending.reward, client.state()) == (1.0, 1.0, {"count": 1})
    client.close()


async def test_pending_calls_go_into_tasks_gather_and_wait_for(served: ServerThread) -> None:
    first, second, third = (GenericEnvClient(served.url) for _ in range(3))
    await asyncio.create_task(first.reset())
    await asyncio.gather(second.reset(), second.state())
    await asyncio.wait_for(third.reset(), 5)
    for client in (first, second, third):
        await client.close()


def test_a_client_used_in_sync_code_cannot_be_used_in_async_code(served: ServerThread) -> None:
    client = GenericEnvClient(served.url)
    client.reset()

    async def enter() -> None:
        async with client:
            pass

    with pytest.raises(RuntimeError) as error:
        asyncio.run(enter())
    assert str(error.value) == IN_SYNC
    client.close()


async def test_a_pending_call_awaited_after_sync_use_is_refused(served: ServerThread) -> None:
    client = GenericEnvClient(served.url)
    pending = client.reset()
    client.state().get("count")
    with pytest.raises(RuntimeError) as error:
        await pending
    assert str(error.value) == IN_SYNC
    client.close()


async def test_a_client_used_in_async_code_cannot_be_used_in_sync_code_of_the_same_loop(served: ServerThread) -> None:
    client = GenericEnvClient(served.url)
    pending = client.reset()
    await client.state()
    for use in (lambda: pending.observation, lambda: client.sync().reset()):
        with pytest.raises(RuntimeError) as error:
            use()
        assert str(error.value) == IN_ASYNC
    await client.close()


@pytest.mark.parametrize("through_sync", [True, False])
def test_async_code_may_be_left_for_sync_code_and_the_socket_is_opened_again(served: ServerThread, through_sync: bool) -> None:
    async def begin() -> GenericEnvClient:
        client = GenericEnvClient(served.url)
        await client.connect()
        return client

    opened = served.server.sessions_opened
    client = asyncio.run(begin())
    assert (client.sync() if through_sync else client).reset().observation["count"] == 0
    assert served.server.sessions_opened == opened + 2
    client.close()


def test_an_episode_played_on_another_loop_is_lost_until_reset(served: ServerThread) -> None:
    async def play() -> GenericEnvClient:
        client = GenericEnvClient(served.url)
        await client.reset()
        return client

    client = asyncio.run(play())
    with pytest.raises(EpisodeLost, match="another event loop"):
        client.step({"add": 1})
    with pytest.raises(EpisodeLost, match="another event loop"):
        client.state()
    assert client.reset().observation["count"] == 0
    assert client.step({"add": 1}).reward == 1.0
    client.close()


def test_a_client_is_used_on_one_loop_after_another(served: ServerThread) -> None:
    client = GenericEnvClient(served.url)

    async def play() -> int:
        await client.reset()
        return int((await client.step({"add": 2})).observation["count"])

    assert [asyncio.run(play()) for _ in range(3)] == [2, 2, 2]
    client.close()


def test_calls_of_several_tasks_take_turns(served: ServerThread) -> None:
    async def play() -> list[float]:
        async with GenericEnvClient(served.url) as client:
            await client.reset()
            results = await asyncio.gather(*(client.step({"add": 1}) for _ in range(8)))
            return sorted(result.observation["count"] for result in results)

    assert asyncio.run(play()) == [1, 2, 3, 4, 5, 6, 7, 8]


# SyncEnvClient


def test_sync_gives_one_blocking_client_with_its_own_daemon_thread(served: ServerThread) -> None:
    client = CountingClient(served.url)
    sync = client.sync()
    assert isinstance(sync, SyncEnvClient) and client.sync() is sync and sync.async_client is client
    assert sync.connect() is sync
    (thread,) = (each for each in threading.enumerate() if each.name == "openenv-sync-client-loop")
    assert thread.daemon
    assert (sync.reset().observation, sync.step(Add(1)).reward, sync.state()) == (Count(0), 1.0, 1)
    sync.disconnect()
    sync.close()
    assert not thread.is_alive()


def test_a_sync_client_is_a_context_manager_and_works_again_after_it(served: ServerThread) -> None:
    sync = CountingClient(served.url).sync()
    for _ in range(2):
        with sync as same:
            assert same is sync and sync.reset().observation == Count(0)


def test_a_sync_client_can_be_made_by_hand_and_several_share_one_loop(served: ServerThread) -> None:
    client = CountingClient(served.url)
    by_hand, second = SyncEnvClient(client), SyncEnvClient(client)
    assert client.sync() is by_hand
    by_hand.reset()
    by_hand.step(Add(2))
    assert (second.state(), client.state()) == (2, 2)
    assert len([each for each in threading.enumerate() if each.name == "openenv-sync-client-loop"]) == 1
    second.close()


class Trick(CountingClient):
    """A user's client with methods of its own."""

    colour = "blue"

    async def twice(self, action: Add) -> StepResult[Count]:
        """Async, and built on the inherited methods."""
        await self.step(action)
        result: StepResult[Count] = await self.step(action)
        return result

    def name(self) -> str:
        """Not async."""
        return "trick"

    async def reset(self, **kwargs: Any) -> StepResult[Count]:
        """Replaces an inherited method."""
        result: StepResult[Count] = await super().reset(**kwargs)
        return StepResult(result.observation, -1.0)


def test_unknown_attributes_are_the_async_clients_and_its_coroutine_methods_block(served: ServerThread) -> None:
    with Trick(served.url).sync() as sync:
        assert (sync.colour, sync.name(), sync.base_url) == ("blue", "trick", served.url)
        assert sync.reset().reward == -1.0
        assert sync.twice(Add(2)).observation == Count(4)
        with pytest.raises(AttributeError, match="nonsense"):
            sync.nonsense()


async def test_methods_that_a_subclass_replaced_are_the_ones_that_async_code_calls(served: ServerThread) -> None:
    async with Trick(served.url) as client:
        assert (await client.reset()).reward == -1.0
        assert (await client.twice(Add(1))).observation == Count(2)


def test_threads_may_share_a_sync_client(served: ServerThread) -> None:
    with CountingClient(served.url).sync() as sync:
        sync.reset()
        threads = [threading.Thread(target=lambda: sync.step(Add(1))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(5)
        assert sync.state() == 8


def test_a_blocking_call_on_the_loop_that_has_to_carry_it_out_is_refused(served: ServerThread) -> None:
    class Wrong(CountingClient):
        async def ask(self) -> int:
            return self.sync().state()

    with Wrong(served.url).sync() as sync, pytest.raises(RuntimeError, match="await the async client instead"):
        sync.ask()


def test_what_is_forgotten_is_closed_by_the_garbage_collector(served: ServerThread) -> None:
    sync = CountingClient(served.url).sync()
    sync.reset()
    assert served.server.sessions_open >= 1
    del sync
    gc.collect()
    served.wait(lambda server: server.sessions_open == 0)


def test_64_clients_opened_and_closed_leave_no_thread_and_no_loop(served: ServerThread) -> None:
    def loops() -> int:
        gc.collect()
        # by type(): isinstance asks a weak proxy, which other tests may have left, for what is gone
        found = (each for each in gc.get_objects() if issubclass(type(each), asyncio.AbstractEventLoop))
        return sum(not each.is_closed() for each in found)

    before = threading.active_count(), loops()
    clients: list[EnvClient[Any, Any, Any]] = [CountingClient(served.url) for _ in range(64)]
    for number, client in enumerate(clients):
        (client if number % 2 else client.sync()).reset()
    assert threading.active_count() == before[0] + 64
    for number, client in enumerate(clients):
        (client if number % 2 else client.sync()).close()
    assert (threading.active_count(), loops()) == before
    served.wait(lambda server: server.sessions_open == 0)


def test_a_connection_on_a_loop_that_still_runs_elsewhere_is_closed_there(served: ServerThread) -> None:
    first, second = LoopThread(), LoopThread()
    client = CountingClient(served.url)
    first.run(client._reset_async)
    with pytest.raises(EpisodeLost, match="another event loop"):
        second.run(client._state_async)
    assert second.run(client._reset_async).observation == Count(0)
    served.wait(lambda server: server.sessions_open == 1)
    second.run(client._close_async)
    for thread in (first, second):
        thread.stop()
