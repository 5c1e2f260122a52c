"""The client's contract: sessions beside one another, and the order of closing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from testkit.clients import Add, Count, CountingClient, ServerProvider
from testkit.script import Counting, Turn, Wire, error, observation
from testkit.scripted import ScriptedServer, ScriptedSession

from openenv_client.errors import (
    EpisodeLost,
)

SHORT = 0.05


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer() as running:
        yield running


# Further sessions and closing


class Narrow(CountingClient):
    """A user's class whose constructor takes fewer arguments than its base."""

    def __init__(self, base_url: str, message_timeout_s: float = 7.0) -> None:
        super().__init__(base_url, message_timeout_s=message_timeout_s)


class Wide(CountingClient):
    """One that passes on whatever it is given, and adds something of its own."""

    def __init__(self, colour: str = "red", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.colour = colour


async def test_a_new_session_is_another_connected_client_of_the_same_class(server: ScriptedServer) -> None:
    async with CountingClient(server.url, message_timeout_s=3.0, late_reply_s=2.0, headers={"X": "y"}) as parent:
        child = await parent.new_session()
        assert type(child) is CountingClient and child is not parent
        assert (child._message_timeout, child._late_reply, child._headers) == (3.0, 2.0, {"X": "y"})
        await parent.reset()
        await child.reset()
        await parent.step(Add(1))
        assert ((await child.step(Add(5))).observation, await parent.state()) == (Count(5), 1)


async def test_a_new_session_is_made_with_the_arguments_that_its_class_takes(server: ScriptedServer) -> None:
    async with Narrow(server.url, 3.0) as narrow, Wide(base_url=server.url, headers={"X": "y"}) as wide:
        first, second = await narrow.new_session(), await wide.new_session()
        assert (type(first), first._message_timeout) == (Narrow, 3.0)
        assert (type(second), second.colour, second._headers) == (Wide, "red", {"X": "y"})


async def test_children_are_closed_with_their_parent(server: ScriptedServer) -> None:
    async with CountingClient(server.url) as parent:
        children = [await parent.new_session() for _ in range(3)]
        await children[0].close()
        await server.until(lambda: server.sessions_open == 3)
    await server.until(lambda: server.sessions_open == 0)
    assert server.close_frames == 4


async def test_a_child_that_is_used_again_after_its_close_is_closed_with_its_parent(server: ScriptedServer) -> None:
    async with CountingClient(server.url) as parent:
        child = await parent.new_session()
        await child.close()
        await child.reset()
    await server.until(lambda: server.sessions_open == 0)


async def test_closed_children_are_forgotten(server: ScriptedServer) -> None:
    async with CountingClient(server.url) as parent:
        for _ in range(5):
            await (await parent.new_session()).close()
        assert parent._child_clients == set()


async def test_a_new_session_starts_an_owned_provider_once(server: ScriptedServer) -> None:
    provider = ServerProvider(server.url)
    async with CountingClient(provider=provider) as parent:
        await parent.new_session()
        await parent.close()
        await (await parent.new_session()).reset()
    assert provider.verbs == ["start", "wait_for_ready", "stop"] * 2


async def test_a_session_that_cannot_be_made_stops_the_provider_that_was_started_for_it(server: ScriptedServer) -> None:
    class Broken(CountingClient):
        def __init__(self, provider: Any = None, base_url: str | None = None) -> None:
            if base_url is not None:
                raise LookupError("no children today")
            super().__init__(provider=provider)

    provider = ServerProvider(server.url)
    with pytest.raises(LookupError):
        await Broken(provider).new_session()
    assert provider.verbs == ["start", "wait_for_ready", "stop"]


def close_order(events: list[str]) -> Callable[[ScriptedSession], Any]:
    """A server that notes how each session ends, by the label of its reset."""
    counting = Counting()

    async def converse(session: ScriptedSession) -> None:
        label = "?"
        while (frame := await session.receive()) is not None:
            label = frame["data"].get("label", label)
            await session.send(counting(session.number, frame))
        events.append(f"close frame of {label}")
        await session.websocket.wait_closed()
        events.append(f"end of {label}")

    return converse


@pytest.mark.parametrize("cancelled", [False, True])
async def test_closing_ends_children_then_the_session_then_the_provider(cancelled: bool) -> None:
    events: list[str] = []

    class Noting(ServerProvider):
        def stop(self) -> None:
            events.append("provider stopped")

    async with ScriptedServer(handler=close_order(events)) as server:
        client = CountingClient(provider=Noting(server.url))
        await client.reset(label="parent")
        await (await client.new_session()).reset(label="child")
        closing = asyncio.ensure_future(client.close())
        if cancelled:
            await asyncio.sleep(0)
            closing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await closing
        else:
            await closing
        await server.until(lambda: server.sessions_open == 0)
    frames = [event for event in events if not event.startswith("end")]
    assert frames == ["close frame of child", "close frame of parent", "provider stopped"]
    assert sorted(events)[:2] == ["close frame of child", "close frame of parent"]


async def test_a_failing_stop_does_not_keep_the_session_open(server: ScriptedServer) -> None:
    client = CountingClient(provider=ServerProvider(server.url, {"stop": RuntimeError("not now")}))
    await client.reset()
    with pytest.raises(RuntimeError, match="not now"):
        await client.close()
    await server.until(lambda: server.sessions_open == 0)


async def test_closing_in_mid_step_takes_a_second_at_most_and_the_step_is_told(server: ScriptedServer) -> None:
    client = CountingClient(server.url)
    await client.reset()
    server.hold_reply()
    stepping = asyncio.ensure_future(client.step(Add(1)))
    await server.until(lambda: len(server.requests) == 2)
    await asyncio.wait_for(client.close(), 3)
    with pytest.raises(EpisodeLost, match="closed by this side"):
        await stepping


async def test_what_a_close_overtakes_is_not_sent_to_a_fresh_environment(server: ScriptedServer) -> None:
    client = CountingClient(server.url)
    await client.reset()
    server.hold_reply()
    calls = [asyncio.ensure_future(call) for call in (client.step(Add(1)), client.step(Add(2)), client.reset())]
    await server.until(lambda: len(server.requests) == 2)
    await client.close()
    for call in calls:
        with pytest.raises(EpisodeLost, match="closed"):
            await call
    assert (server.sessions_opened, len(server.requests)) == (1, 2)


async def test_a_close_in_mid_reset_is_the_end_of_it(server: ScriptedServer) -> None:
    client = CountingClient(server.url)
    await client.reset()
    server.hold_reply()
    resetting = asyncio.ensure_future(client.reset())
    await server.until(lambda: len(server.requests) == 2)
    await client.close()
    with pytest.raises(EpisodeLost, match="closed"):
        await resetting
    assert server.sessions_opened == 1


async def test_closing_while_connecting_ends_both() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    listener = await asyncio.start_server(silent, "127.0.0.1", 0)
    client = CountingClient(f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}", connect_timeout_s=60)
    connecting = asyncio.ensure_future(client.connect())
    await asyncio.sleep(0.02)
    await asyncio.wait_for(client.close(), 3)
    with pytest.raises(EpisodeLost, match="the client was closed meanwhile"):
        await connecting
    listener.close()
    await listener.wait_closed()


async def test_a_script_of_openenvs_frames_is_spoken_word_for_word() -> None:
    script = [
        Turn(observation(count=0), {"type": "reset", "data": {"seed": 3}}),
        Turn(observation(1.0, count=1), {"type": "step", "data": {"add": 1}}),
        Turn({"type": "state", "data": {"count": 1}}, {"type": "state"}),
        Turn(error("EXECUTION_ERROR", "99"), {"type": "step", "data": {"add": 2}}),
        Turn(Wire.ABORT, {"type": "step", "data": {"add": 3}}),
    ]
    async with ScriptedServer(script) as server, CountingClient(server.url) as client:
        await client.reset(seed=3)
        await client.step(Add(1))
        await client.state()
        with pytest.raises(RuntimeError, match=r"^Server error: 99 \(code: EXECUTION_ERROR\)$"):
            await client.step(Add(2))
        with pytest.raises(EpisodeLost):
            await client.step(Add(3))
