"""The client's contract on the wire: which paths a mode asks for, and proxies that drop pings."""

from __future__ import annotations

import asyncio

import pytest
from testkit.clients import Add, Count, CountingClient
from testkit.relay import relayed
from testkit.script import Counting, Reply, observation
from testkit.scripted import ScriptedServer

from openenv_client import MCPToolClient
from openenv_client.errors import EpisodeLost
from openenv_client.frames import JsonObject

PING_S = 0.05


async def test_in_simulation_mode_every_call_goes_over_ws_and_nothing_else_is_asked_for() -> None:
    def respond(session: int, frame: JsonObject) -> Reply:
        wanted = frame.get("data", {}).get("type")
        if wanted == "list_tools":
            return observation(tools=[{"name": "say"}])
        return observation(tool_name="say", result="hi") if wanted == "call_tool" else counting(session, frame)

    counting = Counting()
    async with ScriptedServer(respond=respond) as server, relayed(server.url) as relay:
        async with MCPToolClient(relay.url, mode="simulation") as client:
            await client.reset()
            await client.state()
            await client.list_tools()
            assert await client.call_tool("say") == "hi"
            await (await client.new_session()).reset()
        assert relay.paths == ["/ws", "/ws"]


async def test_behind_a_proxy_that_drops_pings_an_episode_lives_without_pings() -> None:
    async with ScriptedServer() as server, relayed(server.url, drop_pings=True) as relay:
        async with CountingClient(relay.url, websocket_ping_interval_s=None) as client:
            await client.reset()
            await asyncio.sleep(4 * PING_S)  # longer than what ends the one of the next test
            assert (await client.step(Add(1))).observation == Count(1)
        assert relay.dropped == 0


async def test_behind_such_a_proxy_pings_end_the_episode_and_the_error_says_so() -> None:
    async with ScriptedServer() as server, relayed(server.url, drop_pings=True) as relay:
        async with CountingClient(
            relay.url, websocket_ping_interval_s=PING_S, websocket_ping_timeout_s=PING_S
        ) as client:
            await client.reset()
            server.hold_reply()
            with pytest.raises(EpisodeLost, match="ping"):
                await client.step(Add(1), timeout_s=5)
            server.release_reply()
        assert relay.dropped >= 1
