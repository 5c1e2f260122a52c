"""Who owns which lane, and when it ends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from testkit.gateways import environment_settings
from testkit.scripted import ScriptedServer

from openenv_client.errors import EpisodeLost
from openenv_client.frames import State
from openenv_gateway.errors import Draining, QueueTimeout, UnknownHandle
from openenv_gateway.mapping.actions import Request
from openenv_gateway.sessions.phases import Phase
from openenv_gateway.sessions.registry import LaneRegistry

RESET, STATE = Request("reset", {}), Request("state", {})


@asynccontextmanager
async def registry_on(server: ScriptedServer, **changes: Any) -> AsyncIterator[LaneRegistry]:
    registry = LaneRegistry(environment_settings(server.url, **changes))
    try:
        yield registry
    finally:
        await registry.close()


async def test_handles_cannot_be_guessed_and_belong_to_their_principal() -> None:
    async with ScriptedServer() as server, registry_on(server) as registry:
        lane = registry.new("alice")
        assert len(lane.handle) >= 32 and lane.handle != registry.new("alice").handle
        assert registry.by_handle(lane.handle, "alice") is lane
        errors = []
        for handle, principal in ((lane.handle, "bob"), ("guess", "alice")):
            with pytest.raises(UnknownHandle) as caught:
                registry.by_handle(handle, principal)
            errors.append(str(caught.value).replace(handle, "…"))
        assert errors[0] == errors[1]  # somebody else's is answered as if unknown


async def test_a_name_is_one_lane_per_principal() -> None:
    async with ScriptedServer() as server, registry_on(server) as registry:
        lane = registry.named("alice", "me")
        assert registry.named("alice", "me") is lane
        assert registry.named("bob", "me") is not lane
        assert registry.named("alice", "you") is not lane


async def test_a_lane_lingers_when_its_last_owner_leaves_and_stays_for_whoever_comes_with_the_handle() -> None:
    async with ScriptedServer() as server, registry_on(server, timeouts_linger_s=60) as registry:
        lane = registry.new("alice")
        lane.owners |= {"first", "second"}
        registry.leave("first", lane)
        assert lane.lingers_since is None
        registry.leave("second", lane)
        assert lane.lingers_since is not None
        registry.sweep()
        assert registry.by_handle(lane.handle, "alice").lingers_since is None


async def test_a_lingering_lane_ends_after_linger_s_and_an_unused_one_after_idle_s() -> None:
    async with ScriptedServer() as server, registry_on(server) as registry:
        lingering, unused, young = registry.new("a"), registry.new("a"), registry.new("a")
        await lingering.call(RESET, "reset")
        lingering.lingers_since = time.monotonic() - 121
        unused.last_used = time.monotonic() - 1801
        registry.sweep()
        assert len(registry) == 1 and registry.by_handle(young.handle, "a") is young
        await server.until(lambda: server.sessions_open == 0)


async def test_an_owned_lane_that_idled_gives_its_session_back_and_its_agent_is_told() -> None:
    async with ScriptedServer() as server, registry_on(server) as registry:
        lane = registry.new("alice")
        lane.owners.add("session")
        await lane.call(RESET, "reset")
        lane.last_used = time.monotonic() - 1801
        registry.sweep()
        await server.until(lambda: server.sessions_open == 0)
        assert lane.phase is Phase.LOST
        with pytest.raises(EpisodeLost, match="idle_timeout_s"):
            await lane.call(STATE, "state")


async def test_lingering_lanes_make_room_for_who_waits_the_oldest_first() -> None:
    async with ScriptedServer(capacity=2) as server, registry_on(server) as registry:
        older, younger, new = registry.new("a"), registry.new("a"), registry.new("b")
        await older.call(RESET, "reset")
        await younger.call(RESET, "reset")
        older.lingers_since, younger.lingers_since = time.monotonic() - 60, time.monotonic() - 30
        await new.call(RESET, "reset")
        assert older.phase is Phase.CLOSED
        assert younger.phase is Phase.IN_EPISODE
        with pytest.raises(UnknownHandle):
            registry.by_handle(older.handle, "a")


async def test_who_waits_already_gets_the_place_of_a_lane_whose_last_owner_leaves() -> None:
    async with ScriptedServer(capacity=1) as server, registry_on(server, timeouts_queue_s=5) as registry:
        old, new = registry.new("a"), registry.new("b")
        old.owners.add("session")
        await old.call(RESET, "reset")
        waits = asyncio.ensure_future(new.call(RESET, "reset"))
        await server.until(lambda: len(server.handshakes) == 2)
        registry.leave("session", old)
        assert (await waits).opened
        assert old.phase is Phase.CLOSED


async def test_a_lane_that_its_handle_alone_holds_makes_room_when_its_episode_is_over() -> None:
    async with ScriptedServer(capacity=1) as server, registry_on(server) as registry:
        over, new = registry.new("a"), registry.new("a")
        await over.call(RESET, "reset")
        assert (await over.call(Request("step", {"add": 10}), "step")).reply.done  # type: ignore[union-attr]
        assert (await new.call(RESET, "reset")).opened
        assert over.phase is Phase.CLOSED


async def test_a_lane_that_its_handle_alone_holds_makes_room_in_mid_episode_only_when_unused_for_linger_s() -> None:
    async with ScriptedServer(capacity=1) as server, registry_on(server, timeouts_queue_s=0.3) as registry:
        held, new = registry.new("a"), registry.new("a")
        await held.call(RESET, "reset")
        with pytest.raises(QueueTimeout):
            await new.call(RESET, "reset")
        held.last_used = time.monotonic() - 121
        waits = asyncio.ensure_future(new.call(RESET, "reset"))
        registry.sweep()
        assert (await waits).opened
        assert held.phase is Phase.CLOSED


async def test_lanes_of_an_mcp_session_or_a_name_keep_their_place_when_their_episode_is_over() -> None:
    async with ScriptedServer(capacity=2) as server, registry_on(server, timeouts_queue_s=0.2) as registry:
        owned, named, new = registry.new("a"), registry.named("a", "me"), registry.new("a")
        owned.owners.add("session")
        for lane in (owned, named):
            await lane.call(RESET, "reset")
            await lane.call(Request("step", {"add": 10}), "step")
        with pytest.raises(QueueTimeout):
            await new.call(RESET, "reset")
        assert (owned.phase, named.phase) == (Phase.DONE, Phase.DONE)


async def test_a_busy_lane_is_never_swept() -> None:
    async with ScriptedServer() as server, registry_on(server) as registry:
        lane = registry.new("a")
        await lane.call(RESET, "reset")
        server.hold_reply()
        task = asyncio.ensure_future(lane.call(STATE, "state"))
        await server.until(lambda: len(server.requests) == 2)
        lane.last_used = lane.lingers_since = time.monotonic() - 10_000
        registry.sweep()
        server.release_reply()
        assert (await task).episode == lane.episode


async def test_draining_takes_no_new_lane_and_lets_the_old_go_on() -> None:
    async with ScriptedServer() as server, registry_on(server) as registry:
        lane = registry.new("a")
        assert (await lane.call(RESET, "reset")).opened
        registry.drain()
        with pytest.raises(Draining):
            registry.new("a")
        with pytest.raises(Draining):
            registry.named("a", "name")
        assert (await lane.call(STATE, "state")).reply == State({"count": 0})


async def test_closing_ends_every_lane() -> None:
    async with ScriptedServer() as server:
        async with registry_on(server) as registry:
            for _ in range(5):
                await registry.new("a").call(RESET, "reset")
        await server.until(lambda: server.sessions_open == 0)
        assert len(registry) == 0


async def test_draining_tells_who_waits_for_a_place_at_once() -> None:
    async with ScriptedServer(capacity=1) as server, registry_on(server) as registry:
        holder, waiter = registry.new("a"), registry.new("b")
        await holder.call(RESET, "reset")
        waiting = asyncio.ensure_future(waiter.call(RESET, "reset"))
        await server.until(lambda: server.sessions_opened == 2)
        registry.drain()
        with pytest.raises(Draining):
            await waiting
        assert (await holder.call(STATE, "state")).reply == State({"count": 0})


async def test_calls_that_go_on_too_long_are_ended_with_an_answer() -> None:
    async with ScriptedServer() as server, registry_on(server) as registry:
        lane = registry.new("a")
        await lane.call(RESET, "reset")
        server.hold_reply()
        task = asyncio.ensure_future(lane.call(STATE, "state"))
        await server.until(lambda: len(server.requests) == 2)
        registry.drain()
        registry.give_up_calls()
        with pytest.raises(EpisodeLost):
            await task
        server.release_reply()
