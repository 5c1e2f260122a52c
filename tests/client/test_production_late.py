"""Production mode when answers do not come: timeouts, cancellations, ends of the gateway and of the environment behind it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
from testkit.gateways import Served, environment_settings, serving
from testkit.http_relay import HttpRelay, http_relay, response
from testkit.script import error, observation
from testkit.scripted import ScriptedServer
from testkit.suspensions import every_await_point

from openenv_client import GenericEnvClient
from openenv_client.errors import EnvironmentFault, EpisodeLost, LateReply

SOON = 0.1


@asynccontextmanager
async def client_on(
    server: ScriptedServer, late_reply_s: float | None = None, **changes: Any
) -> AsyncIterator[GenericEnvClient]:
    async with serving(environment_settings(server.url, **changes)) as served:
        async with GenericEnvClient(served.base_url, mode="production", late_reply_s=late_reply_s) as client:
            yield client


async def timed_out(server: ScriptedServer, client: GenericEnvClient) -> None:
    """An episode in which adding 3 took too long; it is carried out now."""
    await client.reset()
    server.hold_reply()
    with pytest.raises(TimeoutError, match=r"No reply to step within 0\.1 s"):
        await client.step({"add": 3}, timeout_s=SOON)
    server.release_reply()


async def test_after_a_timeout_the_episode_is_lost_until_reset_and_no_call_gets_anothers_answer() -> None:
    async with ScriptedServer() as server, client_on(server) as client:
        await timed_out(server, client)
        for call in (client.step({"add": 1}), client.state(), client.call_tool("step", add=1)):
            with pytest.raises(EpisodeLost, match=r"step was sent and not answered within 0\.1 s"):
                await call
        assert (await client.reset(seed=1)).observation["count"] == 0
        assert (await client.step({"add": 1})).observation == {"count": 1, "echo": {"add": 1}}


async def test_with_late_reply_s_the_next_step_tells_the_late_outcome_and_is_not_sent() -> None:
    async with ScriptedServer() as server, client_on(server, late_reply_s=5) as client:
        await timed_out(server, client)
        with pytest.raises(LateReply) as late:
            await client.step({"add": 1})
        assert (late.value.result.observation["count"], late.value.result.reward) == (3, 3.0)
        assert await client.state() == {"count": 3}
        assert (await client.step({"add": 1})).observation["count"] == 4


async def test_state_answers_after_a_timeout_and_leaves_the_telling_to_the_next_step() -> None:
    async with ScriptedServer() as server, client_on(server, late_reply_s=5) as client:
        await timed_out(server, client)
        assert await client.state() == {"count": 3}
        with pytest.raises(LateReply):
            await client.call_tool("step", add=1)
        assert (await client.step({"add": 1})).observation["count"] == 4


async def test_a_reset_drops_what_came_late() -> None:
    async with ScriptedServer() as server, client_on(server, late_reply_s=5) as client:
        await timed_out(server, client)
        assert (await client.reset()).observation["count"] == 0
        assert (await client.step({"add": 1})).observation["count"] == 1


async def test_a_cancelled_step_is_told_late_like_one_that_timed_out() -> None:
    async with ScriptedServer() as server, client_on(server, late_reply_s=5) as client:
        await client.reset()
        server.hold_reply()
        step = asyncio.ensure_future(client.step({"add": 3}))
        await server.until(lambda: len(server.requests) == 2)
        step.cancel()
        with pytest.raises(asyncio.CancelledError):
            await step
        server.release_reply()
        with pytest.raises(LateReply) as late:
            await client.step({"add": 1})
        assert late.value.result.observation["count"] == 3


async def test_an_outcome_that_does_not_come_late_either_ends_the_episode() -> None:
    async with ScriptedServer() as server, client_on(server, late_reply_s=SOON) as client:
        await client.reset()
        server.hold_reply()
        with pytest.raises(TimeoutError):
            await client.step({"add": 3}, timeout_s=SOON)
        with pytest.raises(EpisodeLost, match=r"did not come, and not within another 0\.1 s either"):
            await client.step({"add": 1})
        server.release_reply()
        assert (await client.reset()).observation["count"] == 0


async def test_a_late_failure_is_told_with_its_cause() -> None:
    def respond(session: int, frame: dict[str, Any]) -> Any:
        return error("EXECUTION_ERROR", "boom") if frame["type"] == "step" else observation(count=0)

    async with ScriptedServer(respond=respond) as server, client_on(server, late_reply_s=5) as client:
        await timed_out(server, client)
        with pytest.raises(LateReply) as late:
            await client.step({"add": 1})
        assert late.value.payload is None and isinstance(late.value.__cause__, EnvironmentFault)


async def test_the_gateways_own_timeout_is_a_timeout_and_ends_the_episode() -> None:
    async with ScriptedServer() as server, client_on(server, timeouts_step_s=SOON) as client:
        await client.reset()
        server.hold_reply()
        with pytest.raises(TimeoutError, match="No reply to step"):
            await client.step({"add": 3})
        server.release_reply()
        with pytest.raises(EpisodeLost, match="step was sent and not answered within 0.1 s"):
            await client.step({"add": 1})
        assert (await client.reset()).observation["count"] == 0


async def test_with_late_reply_s_the_gateways_own_timeout_keeps_the_episode_too() -> None:
    async with ScriptedServer() as server, client_on(server, late_reply_s=5, timeouts_step_s=SOON) as client:
        await client.reset()
        server.hold_reply()
        with pytest.raises(TimeoutError):
            await client.step({"add": 3})
        server.release_reply()
        with pytest.raises(LateReply) as late:
            await client.step({"add": 1})
        assert late.value.result.observation["count"] == 3
        assert (await client.step({"add": 1})).observation["count"] == 4


async def test_a_late_outcome_that_the_gateway_tells_beside_a_state_is_told_by_the_next_step() -> None:
    async with ScriptedServer() as server, client_on(server, late_reply_s=5, timeouts_step_s=SOON) as client:
        await client.reset()
        server.hold_reply()
        with pytest.raises(TimeoutError):
            await client.step({"add": 3})
        server.release_reply()
        assert await client.state() == {"count": 3}
        with pytest.raises(LateReply) as late:
            await client.step({"add": 1})
        assert late.value.result.observation["count"] == 3


async def test_a_timeout_of_something_that_only_looks_ends_no_episode() -> None:
    async with ScriptedServer() as server, client_on(server) as client:
        await client.reset()
        client._message_timeout = SOON
        server.hold_reply()
        with pytest.raises(TimeoutError, match="No reply to state"):
            await client.state()
        server.release_reply()
        client._message_timeout = 5.0
        assert (await client.step({"add": 1})).observation["count"] == 1


# --- ends -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("held", [False, True])
async def test_an_environment_that_dies_between_steps_or_in_one_is_an_error_at_once_and_reset_recovers(held: bool) -> None:
    async with ScriptedServer() as server, client_on(server) as client:
        await client.reset()
        if held:
            server.hold_reply()
        else:
            server.cut()
        step = asyncio.ensure_future(client.step({"add": 1}))
        if held:
            await server.until(lambda: len(server.requests) == 2)
            server.cut()
        with pytest.raises(EpisodeLost):
            await asyncio.wait_for(step, 5)
        server.release_reply()
        assert (await client.reset()).observation["count"] == 0


@asynccontextmanager
async def relayed(server: ScriptedServer) -> AsyncIterator[tuple[HttpRelay, Served]]:
    async with serving(environment_settings(server.url)) as served, http_relay(served.base_url) as relay:
        yield relay, served


async def test_a_connection_that_breaks_in_a_step_is_an_error_at_once_and_the_step_is_not_sent_again() -> None:
    async with ScriptedServer() as server, relayed(server) as (relay, _):
        async with GenericEnvClient(relay.url, mode="production") as client:
            await client.reset()
            relay.answer = lambda request: b"" if request.rpc == "tools/call" else None
            with pytest.raises(EpisodeLost, match="broke before the answer came"):
                await client.step({"add": 1})
            relay.answer = lambda request: None
            assert relay.rpcs.count("tools/call") == 2
            with pytest.raises(EpisodeLost):
                await client.step({"add": 1})
            assert (await client.reset()).observation["count"] == 0


async def test_a_gateway_that_is_gone_between_steps_is_an_error_at_once_and_reset_recovers_on_the_next_one() -> None:
    async with ScriptedServer() as server, serving(environment_settings(server.url)) as served:
        async with http_relay(served.base_url) as relay:
            client = GenericEnvClient(relay.url, mode="production")
            await client.reset()
        with pytest.raises(EpisodeLost, match="cannot be reached"):
            await asyncio.wait_for(client.step({"add": 1}), 5)
        with pytest.raises(ConnectionError):
            await client.reset()
        relay = HttpRelay(served.base_url, lambda request: None)
        port = int(client.base_url.rpartition(":")[2]) if client.base_url else 0
        async with await asyncio.start_server(relay.serve, "127.0.0.1", port, reuse_address=True):
            assert (await client.reset()).observation["count"] == 0
            await client.close()


@pytest.mark.parametrize("status", [404, 502])
async def test_a_session_that_is_unknown_or_an_answer_from_elsewhere_ends_the_episode(status: int) -> None:
    async with ScriptedServer() as server, relayed(server) as (relay, _):
        async with GenericEnvClient(relay.url, mode="production") as client:
            await client.reset()
            relay.answer = lambda request: response(status, b"no") if request.rpc == "tools/call" else None
            with pytest.raises(EpisodeLost):
                await client.step({"add": 1})
            relay.answer = lambda request: None
            assert (await client.reset()).observation["count"] == 0


# --- cancellation anywhere ------------------------------------------------------------------------------------------


async def play(client: GenericEnvClient) -> None:
    await client.reset()
    await client.step({"add": 1})
    await client.state()


async def with_children(client: GenericEnvClient) -> None:
    await (await client.new_session()).reset()


async def closed(client: GenericEnvClient) -> None:
    await client.reset()
    await client._close_async()


WORK: dict[str, Callable[[GenericEnvClient], Coroutine[Any, Any, object]]] = {
    "connect": lambda client: client._connect_async(),
    "reset, step, state": play,
    "new_session": with_children,
    "close": closed,
}


@pytest.mark.parametrize("late_reply_s", [None, 5.0])
@pytest.mark.parametrize("name", WORK)
async def test_a_cancellation_at_any_await_point_leaves_no_session_task_or_socket(
    name: str, late_reply_s: float | None
) -> None:
    async with ScriptedServer() as server, serving(environment_settings(server.url)) as served:
        lanes = served.gateway.endpoints["counting"].environment.lanes
        clients: list[GenericEnvClient] = []

        def make() -> Coroutine[Any, Any, object]:
            clients.append(GenericEnvClient(served.base_url, mode="production", late_reply_s=late_reply_s))
            return WORK[name](clients[-1])

        before, points = _tasks(), 0
        async for _ in every_await_point(make):
            await clients[-1].close()
            async with asyncio.timeout(5):
                while len(lanes) or server.sessions_open or _tasks() - before:  # noqa: ASYNC110
                    await asyncio.sleep(0.005)
            points += 1
        await clients[-1].close()
        assert points >= 3


def _tasks() -> set[str]:
    """Tasks of the client."""
    return {repr(task) for task in asyncio.all_tasks() if "openenv_client/mcp" in repr(task.get_coro())}
