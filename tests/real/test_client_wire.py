"""Our connection and discovery against the real framework, each version of it: what the scripted server only imitates."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from testkit import servers, venvs
from testkit.arcade import Arcade

from openenv_client.connection import Connection
from openenv_client.discovery import describe, health
from openenv_client.errors import (
    CapacityReached,
    EpisodeLost,
    FactoryFailed,
    NotAnEnvironment,
    ReplyTimeout,
    SessionRefused,
    WebSocketRefused,
)
from openenv_client.frames import Kind, Observation, parse_reply

pytestmark = pytest.mark.real

LONG = 20.0


@pytest.fixture(scope="module")
def counter(arcade: Arcade) -> str:
    """The URL of a counter with one session, as the framework's default is."""
    return arcade.url("solo")


@pytest.fixture
def framework(venv_python: Callable[[str], Path]) -> Path:
    return venv_python(venvs.OPENENV_0_10)


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Connection]:
    session = await Connection.open(url)
    try:
        yield session
    finally:
        await session.close()


async def see(session: Connection, kind: Kind, data: dict[str, Any] | None = None) -> dict[str, Any]:
    reply = parse_reply(await session.exchange(kind, data, LONG))
    assert isinstance(reply, Observation), reply
    return reply.observation


async def admitted(url: str) -> Connection:
    """The next session that the server grants; the slot of a closed one may take a moment to become free."""
    async with asyncio.timeout(LONG):
        while True:
            session = await Connection.open(url)
            try:
                await see(session, "reset")
            except CapacityReached:
                await session.close()
            else:
                return session


async def test_it_is_healthy_and_describes_itself(counter: str) -> None:
    await health(counter)
    description = await describe(counter)
    assert description.action["required"] == ["amount"]
    assert description.name


async def test_a_full_server_refuses_every_further_session_and_says_how_many_it_has(counter: str) -> None:
    async def knock() -> int | None:
        async with connected(counter) as session:
            with pytest.raises(CapacityReached) as refusal:
                await session.exchange("reset", {"seed": 1}, LONG)
            return refusal.value.max_sessions

    holder = await admitted(counter)
    one_by_one = [await knock() for _ in range(100)]
    at_once = await asyncio.gather(*(knock() for _ in range(40)))
    await holder.close()
    assert one_by_one + at_once == [1] * 140


async def test_a_closed_session_makes_room_for_the_next_one(counter: str) -> None:
    await (await admitted(counter)).close()
    for _ in range(50):
        await (await admitted(counter)).close()


async def test_a_slow_step_is_collected_late_and_the_episode_goes_on(arcade: Arcade) -> None:
    async with connected(arcade.url("faulty")) as session:
        await see(session, "reset")
        with pytest.raises(ReplyTimeout):
            await session.exchange("step", {"do": "sleep", "seconds": 1}, 0.2)
        late = parse_reply(await session.collect(LONG))
        assert isinstance(late, Observation) and late.observation["did"] == "sleep"
        assert (await see(session, "step", {"do": "nothing"}))["did"] == "nothing"


async def test_a_server_that_dies_in_mid_step_loses_the_episode(framework: Path) -> None:
    with servers.launch("faulty") as server:
        async with connected(server.base_url) as session:
            await see(session, "reset")
            with pytest.raises(EpisodeLost, match="broke"):
                await session.exchange("step", {"do": "exit"}, LONG)


async def test_a_frozen_server_is_left_within_about_a_second(framework: Path) -> None:
    with servers.launch("faulty") as server:
        session = await Connection.open(server.base_url)
        await see(session, "reset")
        with pytest.raises(ReplyTimeout):
            await session.exchange("step", {"do": "freeze"}, 0.2)
        await asyncio.wait_for(session.close(), 3.0)
        assert not session.is_open
        server.kill()


async def test_a_broken_factory_is_described_without_a_name_and_refuses_sessions(arcade: Arcade) -> None:
    description = await describe(arcade.url("factory"))
    assert description.name is None and "do" in description.action["properties"]
    async with connected(arcade.url("factory")) as session:
        with pytest.raises(FactoryFailed, match="failed to create instance"):
            await session.exchange("reset", None, LONG)


async def test_an_unknown_session_to_attach_to_is_a_refusal(newest: Arcade) -> None:
    async with connected(newest.url("counter") + "?session_id=nobody") as session:
        with pytest.raises(SessionRefused, match="Unknown session_id: nobody"):
            await session.exchange("reset", None, LONG)


async def test_a_server_without_schema_or_websocket_is_named_as_such(arcade: Arcade) -> None:
    with pytest.raises(NotAnEnvironment, match="it has no /schema"):
        await describe(arcade.url("no_schema"))
    with pytest.raises(WebSocketRefused, match="HTTP 403"):
        await Connection.open(arcade.url("no_ws"))
