"""Several agents at once: nobody ever sees another's board, and whoever finds no room is told and gets the next free place."""

from __future__ import annotations

import asyncio
import itertools
import random
import shlex
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from testkit import agents, servers, venvs, wire
from testkit.agents import Agent, connected
from testkit.arcade import Arcade
from testkit.leftovers import command_of, marked, new_mark, wait_until_gone
from testkit.witness import Watched, watching

pytestmark = pytest.mark.real

ROUNDS = 500
FAR = 1_000_000


class Player:
    """Plays the counter under a label, and knows what its own board must show."""

    def __init__(self, label: str, agent: Agent) -> None:
        self.label, self.agent = label, agent
        self.amounts: list[int] = []

    async def reset(self) -> None:
        self.amounts = [0]
        same = {} if self.agent.handle is None else {"session_id": self.agent.handle}
        self.check(await self.agent.reset(label=self.label, target=FAR, **same))

    async def step(self, amount: int) -> None:
        self.amounts.append(amount)
        played = await self.agent.play("step", amount=amount)
        assert played["reward"] == amount / 10
        self.check(played)

    def check(self, played: dict[str, Any]) -> None:
        board = f"{self.label}: {'+'.join(map(str, self.amounts))}={sum(self.amounts)} of {FAR}"
        assert played["observation"]["board"] == board


@asynccontextmanager
async def two_players(watched: Watched, environment: str) -> AsyncIterator[tuple[Player, Player]]:
    """One of each era, so that an MCP session and a handle play side by side."""
    async with (
        connected(agents.MCP_2_LEGACY, watched.url(environment)) as red,
        connected(agents.MCP_2_MODERN, watched.url(environment)) as blue,
    ):
        yield Player("red", red), Player("blue", blue)


async def play_interleaved(red: Player, blue: Player) -> None:
    """ROUNDS steps of each, both in flight at once, with resets in between."""
    draw = random.Random(1)
    for turn in range(ROUNDS):
        if turn % 100 == 0:
            await asyncio.gather(red.reset(), blue.reset())
        await asyncio.gather(red.step(draw.randint(-10, 10)), blue.step(draw.randint(-10, 10)))


async def test_two_agents_on_one_server_with_room_for_two_never_see_the_others_board(newest: Arcade) -> None:
    with watching(newest.spec("duo")) as watched:
        async with two_players(watched, "duo") as (red, blue):
            await play_interleaved(red, blue)
            assert watched.gateway.connections_to(newest.url("duo")) == 2
    assert watched.witness.seen["2025-11-25", "tools/call"] == watched.witness.seen["2026-07-28", "tools/call"] == ROUNDS + 5


async def test_two_agents_on_two_servers_with_room_for_one_each_never_see_the_others_board(
    venv_python: Callable[[str], Path],
) -> None:
    venv_python(venvs.OPENENV_0_10)
    mark = new_mark()
    command = shlex.join(["env", "MAX_SESSIONS=1", *servers.command("counter")])
    with watching(f"counter=cmd:{command}?max_servers=2", env=mark) as watched:
        async with two_players(watched, "counter") as (red, blue):
            await play_interleaved(red, blue)
            launched = [process for process in marked(mark) if command_of(process).split()[1:3] == ["-m", "uvicorn"]]
            assert len(launched) == 2
    assert wait_until_gone(mark, 5) == []


async def test_who_finds_no_room_is_told_when_to_try_again_and_gets_the_place_that_becomes_free(newest: Arcade) -> None:
    with watching(newest.spec("duo", "queue_timeout_s=0.3")) as watched:
        async with connected(agents.MCP_2_LEGACY, watched.url("duo")) as third:
            async with connected(agents.MCP_1, watched.url("duo")) as first:
                await first.reset(label="first")
                async with connected(agents.MCP_2_LEGACY, watched.url("duo")) as second:
                    await second.reset(label="second")
                    for _ in range(2):
                        error = await third.fail("reset", label="third")
                        assert (error["code"], error["retryable"]) == ("QUEUE_TIMEOUT", True)
                        assert error["retry_after_s"] > 0
                        assert "No environment session of duo became free within 0.3 s" in error["cause"]
                played = await third.reset(label="third")  # the second has left
                assert played["observation"]["board"].startswith("third: ")
                gone = await third.fail("step", amount=1, session_id=second.handle)
                assert (gone["code"], gone["next_step"].startswith("Call reset")) == ("UNKNOWN_SESSION", True)
                assert (await first.play("step", amount=1))["observation"]["board"].startswith("first: 0+1=1")


async def test_who_waits_for_room_gets_it_the_moment_it_becomes_free(newest: Arcade) -> None:
    with watching(newest.spec("solo", "queue_timeout_s=30")) as watched:
        async with connected(agents.MCP_2_LEGACY, watched.url("solo")) as second:
            async with connected(agents.MCP_2_LEGACY, watched.url("solo")) as first:
                await first.reset(label="first")
                waits = asyncio.create_task(second.reset(label="second"))
                for amount in (1, 2, 3):
                    await first.play("step", amount=amount)
                assert not waits.done()
            async with asyncio.timeout(5):
                assert (await waits)["observation"]["board"].startswith("second: 0=0")


async def test_where_there_are_no_sessions_the_next_episode_needs_no_handle_even_on_a_server_with_room_for_one(
    newest: Arcade,
) -> None:
    with watching(newest.spec("solo", "queue_timeout_s=5")) as watched:
        async with connected(agents.MCP_2_MODERN, watched.url("solo")) as agent:
            for label in ("first", "second"):
                await agent.reset(label=label, target=10)  # told "call reset", a model does just that
                assert (await agent.play("step", amount=10))["done"] is True
                assert (await agent.play("state"))["state"]["label"] == label


async def test_a_reset_that_was_given_up_in_the_queue_takes_no_place_later(newest: Arcade) -> None:
    with watching(newest.spec("solo", "queue_timeout_s=30")) as watched:
        async with connected(agents.MCP_2_MODERN, watched.gateway.url("solo")) as agent:  # the witness would keep the call
            async with wire.session(newest.url("solo")) as stranger:
                await stranger.ask("reset")
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.3):
                        await agent.reset(label="given up")
            async with asyncio.timeout(5):
                await agent.reset(label="second")
            assert (await agent.play("step", amount=1))["observation"]["board"].startswith("second: 0+1=1")
        async with connected(agents.MCP_2_MODERN, watched.url("solo")) as agent:
            await agent.tools()


async def test_a_server_that_others_fill_is_told_in_its_own_words_and_tried_again(newest: Arcade) -> None:
    with watching(newest.spec("solo", "queue_timeout_s=0.3")) as watched:
        async with connected(agents.MCP_2_AUTO, watched.url("solo")) as agent:
            async with wire.session(newest.url("solo")) as stranger:
                await stranger.ask("reset")
                error = await agent.fail("reset")
                assert (error["code"], error["retryable"]) == ("QUEUE_TIMEOUT", True)
                assert "the server says:" in error["cause"]
                assert watched.gateway.connections_to(newest.url("solo")) == 0
            for _ in itertools.repeat(None, 10):  # the server frees the place a moment after the stranger left
                if not (result := await agent.call("reset")).get("isError"):
                    break
            assert agents.told(result)["done"] is False
