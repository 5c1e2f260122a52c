"""The handle of a session: an episode outlives the MCP session in which it began, whoever comes back with it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest
from testkit import agents
from testkit.agents import connected
from testkit.arcade import Arcade
from testkit.witness import Watched, watching

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def front(newest: Arcade) -> Iterator[Watched]:
    with watching(newest.spec("counter")) as watched:
        yield watched


async def begun(watched: Watched, kind: str) -> str:
    """The handle of an episode that stands at 3; its client is closed again (with a DELETE where there is a session)."""
    async with connected(kind, watched.url("counter")) as agent:
        assert (await agent.reset(label="first"))["session_id"] == agent.handle
        await agent.play("step", amount=3)
    assert agent.handle is not None and len(agent.handle) >= 22, "128 random bits take 22 characters"
    return agent.handle


@pytest.mark.parametrize("first", [*agents.HANDSHAKE, agents.MCP_2_MODERN])
@pytest.mark.parametrize("second", [*agents.HANDSHAKE, agents.MCP_2_MODERN])
async def test_with_the_handle_a_second_session_goes_on_in_the_same_episode(front: Watched, first: str, second: str) -> None:
    handle = await begun(front, first)
    async with connected(second, front.url("counter")) as agent:
        played = await agent.play("step", amount=4, session_id=handle)
        assert played["observation"]["board"] == "first: 0+3+4=7 of 20"
        assert "notice" not in played
        assert (await agent.play("state", session_id=handle))["state"]["step_count"] == 2


@pytest.mark.parametrize("kind", agents.HANDSHAKE)
async def test_without_the_handle_a_new_lane_is_opened_and_the_result_says_so(front: Watched, kind: str) -> None:
    handle = await begun(front, kind)
    async with connected(kind, front.url("counter")) as agent:
        played = await agent.play("step", amount=4)
        assert played["observation"]["board"] == ": 0+4=4 of 20"
        assert "A new environment session was opened" in played["notice"]
        assert played["session_id"] not in (None, handle)
        again = await agent.play("step", amount=5)
        assert (again["observation"]["value"], "notice" in again, "session_id" in again) == (9, False, False)


async def test_where_the_protocol_has_no_sessions_a_call_without_handle_is_told_how_to_get_one(front: Watched) -> None:
    async with connected(agents.MCP_2_MODERN, front.url("counter")) as agent:
        assert "session_id" in (await agent.tools())["step"]["inputSchema"]["required"]
        error = await agent.fail("step", amount=1)
        assert (error["code"], error["next_step"].startswith("Call reset first")) == ("SESSION_REQUIRED", True)
        error = await agent.fail("step", amount=1, session_id="made-up-by-a-model-00000000000000")
        assert error["code"] == "UNKNOWN_SESSION"
        await agent.reset()
        assert (await agent.play("step", amount=1))["observation"]["value"] == 1


async def test_one_agent_plays_two_episodes_at_once_with_two_handles(front: Watched) -> None:
    async with connected(agents.MCP_2_MODERN, front.url("counter")) as agent:
        red = (await agent.reset(label="red"))["session_id"]
        agent.handle = None
        blue = (await agent.reset(label="blue"))["session_id"]
        agent.handle = None
        for turn, amount in enumerate((1, 2, 3), 1):
            for label, handle, sign in (("red", red, 1), ("blue", blue, -1)):
                played = await agent.play("step", amount=sign * amount, session_id=handle)
                assert played["observation"]["board"].startswith(f"{label}: 0"), turn
        assert (await agent.play("state", session_id=red))["state"]["value"] == 6
        assert (await agent.play("state", session_id=blue))["state"]["value"] == -6


async def test_after_the_linger_time_the_handle_is_unknown_and_the_environment_session_is_closed(newest: Arcade) -> None:
    with watching(newest.spec("counter", "linger_s=0.2")) as watched:
        handle = await begun(watched, agents.MCP_2_LEGACY)
        deadline = time.monotonic() + 5
        while watched.gateway.connections_to(newest.url("counter")):
            assert time.monotonic() < deadline
            await asyncio.sleep(0.1)  # another process's connection: nothing tells when it ends
        async with connected(agents.MCP_2_LEGACY, watched.url("counter")) as agent:
            error = await agent.fail("step", amount=1, session_id=handle)
            assert error["code"] == "UNKNOWN_SESSION"
            assert "Call reset without session_id" in error["next_step"]


@pytest.mark.parametrize("kind", [*agents.HANDSHAKE, agents.MCP_2_MODERN])
async def test_a_named_session_outlives_clients_that_connect_for_each_call(front: Watched, kind: str) -> None:
    url = front.url("counter", session=f"named-{kind}")
    boards = []
    for amount in (1, 2, 3):
        async with connected(kind, url) as agent:
            assert all("session_id" not in tool["inputSchema"]["properties"] for tool in (await agent.tools()).values())
            boards.append((await agent.play("step", amount=amount))["observation"]["board"])
    assert boards == [": 0+1=1 of 20", ": 0+1+2=3 of 20", ": 0+1+2+3=6 of 20"]
