"""Production mode on real servers: through the gateway it shows what simulation mode shows; without one, what servers have.

The differences that are meant are listed in `with_differences` and in the names of the tests that show them.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from testkit import cli, servers, venvs
from testkit.arcade import Arcade
from testkit.cli import GatewayProcess
from testkit.http_agent import until
from testkit.http_relay import http_relay
from testkit.relay import relayed
from testkit.same_program import program
from testkit.suspensions import every_await_point

from openenv_client import CallToolAction, GenericEnvClient, ListToolsAction, MCPToolClient
from openenv_client.errors import CapacityReached, ConnectFailed, EpisodeLost, FactoryFailed, InvalidArguments, ToolFailed
from openenv_client.mcp.peer import RpcFault

pytestmark = pytest.mark.real

INVALID = "Server error: Invalid message (code: VALIDATION_ERROR)"
CHECKED = "Server error: The arguments do not fit the tool step: {} (code: INVALID_ARGUMENTS)"
WOULD_PASS = 'Arguments that would pass: {"amount": 1}'
REASONS = (
    f"at amount expected a number not above 10, got 99 (integer). {WOULD_PASS}",
    f'at amount expected an integer, got "x" (string). {WOULD_PASS}',
    f"expected the required amount, got {{}} (object). {WOULD_PASS}",
    f'expected only known properties: amount, remark, got "unknown" (string). {WOULD_PASS}',
)
FULL = "Server at capacity: 1/1 sessions active. Cannot accept new connections."
WAITED = "No environment session of solo became free within 0.2 s; the server says: "


def with_differences(played: list[Any], played_sync: list[Any], refused: list[Any]) -> list[list[Any]]:
    """What production mode shows of what simulation mode showed. Everything is equal, but:

    1. The gateway checks an action by the environment's schema, and says what is wrong with it.
    2. Before a first state, or a first step, the gateway makes a reset.
    3. The gateway waits for a free session (queue_timeout_s) before it refuses one, and says so.
    """
    reasons = iter(REASONS)
    invalid = ["RuntimeError", INVALID]
    produced = [["RuntimeError", CHECKED.format(next(reasons))] if item == invalid else item for item in played]
    produced[-1] = {**played[-1], "resets": 1}
    full = f"Server error: {FULL} (code: CAPACITY_REACHED)"
    waited = [["RuntimeError", f"Server error: {WAITED}{FULL} (code: CAPACITY_REACHED)"], *refused[1:]]
    assert (played[-1]["resets"], refused[0]) == (0, ["RuntimeError", full])
    return [produced, played_sync, waited]


@pytest.fixture(scope="module")
def gateway(newest: Arcade) -> Iterator[GatewayProcess]:
    names = ("counter", "gallery", "shapes", "plain_shapes", "toolbox", "faulty", "factory", "reset_raises", "reset_error")
    specs = [newest.spec(name, "after_done=pass") for name in names]
    with cli.serving(*specs, newest.spec("solo", "after_done=pass&queue_timeout_s=0.2")) as gateway:
        yield gateway


def through(gateway: GatewayProcess, environment: str) -> str:
    return f"{gateway.base_url}/envs/{environment}"


def test_one_program_sees_the_same_through_openenvs_client_ours_and_ours_in_production_mode(
    newest: Arcade, gateway: GatewayProcess, venv_python: Callable[[str], Path]
) -> None:
    direct = [f"played {newest.url('counter')}", f"played_sync {newest.url('counter')}", f"refused {newest.url('solo')}"]
    by_gateway = [f"played {through(gateway, 'counter')}", f"played_sync {through(gateway, 'counter')}"]
    by_gateway.append(f"refused {through(gateway, 'solo')}")
    theirs = program(venv_python(venvs.OPENENV_0_10), "openenv.core", *direct)
    simulated = program(sys.executable, "openenv_client", *direct)
    produced = program(sys.executable, "openenv_client", *by_gateway, mode="production")
    assert len(theirs[0]) > 60 and simulated == theirs
    assert produced == with_differences(*simulated)


async def attempt(call: Awaitable[Any]) -> Any:
    try:
        return await call
    except RuntimeError as error:
        return type(error), str(error)


Play = Callable[[Any], Awaitable[list[Any]]]


async def pictures(client: GenericEnvClient) -> list[Any]:
    return [await client.reset(seed=2), await client.step({"number": 3, "size": 32}), await client.state()]


async def kinds(client: GenericEnvClient) -> list[Any]:
    actions = ({"kind": "circle", "radius": 2}, {"kind": "rectangle", "width": 2, "height": 3}, {"kind": "finish"})
    return [await client.reset(), *[await client.step(action) for action in actions]]


async def kinds_by_fields(client: GenericEnvClient) -> list[Any]:
    return [await client.reset(), await client.step({"colour": "red"}), await client.step({"count": 1})]


async def mishaps(client: GenericEnvClient) -> list[Any]:
    bad = [await attempt(client.step({"do": what})) for what in ("key_error", "bare_text", "nothing", "not_a_number")]
    return [await client.reset(), *bad[:3], repr(bad[3])]


async def beginnings(client: GenericEnvClient) -> list[Any]:
    return [await attempt(client.reset()), await attempt(client.reset(seed=1))]


async def tools(client: GenericEnvClient) -> list[Any]:
    seen: list[Any] = [await client.reset(episode_id="e")]
    calls: dict[str, dict[str, Any]] = {
        "say": {"text": "hi"}, "measure": {"width": 2, "height": 3}, "picture": {}, "fail": {"reason": "no"}
    }  # fmt: skip
    for name, arguments in calls.items():
        seen.append(await attempt(client.call_tool(name, **arguments)))
        action = {"type": "call_tool", "tool_name": name, "arguments": arguments}
        seen.append(await client.step(action))
    return [*seen, await client.state(), await client.step({"type": "call_tool", "tool_name": "finish", "arguments": {}})]


@pytest.mark.parametrize(
    ("environment", "play"),
    [
        ("gallery", pictures),
        ("shapes", kinds),
        ("plain_shapes", kinds_by_fields),
        ("faulty", mishaps),
        ("factory", beginnings),
        ("reset_raises", beginnings),
        ("toolbox", tools),
    ],
)
async def test_both_modes_show_the_same(newest: Arcade, gateway: GatewayProcess, environment: str, play: Play) -> None:
    async with GenericEnvClient(newest.url(environment), mode="simulation") as client:
        simulated = await play(client)
    async with GenericEnvClient(through(gateway, environment), mode="production") as client:
        assert await play(client) == simulated


async def test_what_differs_for_tools_is_their_list_unknown_ones_and_checked_arguments(gateway: GatewayProcess) -> None:
    async with MCPToolClient(through(gateway, "toolbox"), mode="production") as client:
        await client.reset()
        own = [tool.name for tool in (await client.step(ListToolsAction())).observation.tools]
        assert [tool.name for tool in await client.list_tools()] == ["reset", *own, "state"]
        assert own[:2] == ["say", "note"]
        for call in (client.call_tool("nothing"), client.step(CallToolAction("nothing"))):
            with pytest.raises(ToolFailed, match=r"Tool 'nothing' failed: there is no such tool\. Tools: reset, say"):
                await call
        with pytest.raises(InvalidArguments, match="at text expected a string"):
            await client.call_tool("say", text=5)
        assert (await client.state()).step_count == 0


async def test_a_reset_that_an_environment_reports_as_failed_in_an_observation_is_an_error(gateway: GatewayProcess) -> None:
    async with GenericEnvClient(through(gateway, "reset_error"), mode="production") as client:
        with pytest.raises(RuntimeError, match=r"Server error: LEVEL_KEY is not set \(code: RESET_FAILED\)"):
            await client.reset()


async def test_a_broken_factory_is_told_by_its_class(gateway: GatewayProcess) -> None:
    async with GenericEnvClient(through(gateway, "factory"), mode="production") as client:
        with pytest.raises(FactoryFailed, match="FACTORY_ERROR"):
            await client.reset()


async def test_on_the_wire_production_asks_for_mcp_alone_and_simulation_for_ws_alone(gateway: GatewayProcess) -> None:
    async with http_relay(gateway.base_url) as relay:
        async with GenericEnvClient(f"{relay.url}/envs/counter", mode="production") as client:
            await client.reset()
            await client.step({"amount": 1})
            await client.state()
        assert {request.path for request in relay.requests} == {"/envs/counter/mcp"}
        assert relay.rpcs[0] == "server/discover"
    async with relayed(gateway.base_url) as wire:
        async with GenericEnvClient(f"{wire.url}/envs/counter", mode="simulation") as client:
            await client.reset()
            await client.step({"amount": 1})
        assert wire.paths == ["/envs/counter/ws"]


async def test_a_gateway_that_is_killed_between_steps_or_in_one_is_an_error_at_once(newest: Arcade) -> None:
    with cli.started(newest.spec("faulty")) as doomed:
        doomed.wait_until_serving()
        async with http_relay(doomed.base_url) as relay:
            one, two = (GenericEnvClient(relay.url, mode="production") for _ in range(2))
            await one.reset()
            await two.reset()
            step = asyncio.ensure_future(one.step({"do": "sleep", "seconds": 2}))
            await until(lambda: relay.rpcs.count("tools/call") == 3)
            doomed.kill()
            for call in (step, two.step({"do": "nothing"})):
                with pytest.raises(EpisodeLost):
                    await asyncio.wait_for(call, 5)
            with pytest.raises(ConnectionError):
                await asyncio.wait_for(one.reset(), 5)
            await one.close()
            await two.close()


# --- a server without a gateway -------------------------------------------------------------------------------------


async def test_a_server_alone_is_played_on_by_mcp_for_tools_and_by_its_session_for_the_rest(newest: Arcade) -> None:
    async with MCPToolClient(newest.url("toolbox"), mode="production") as client:
        assert (await client.reset(episode_id="e")).observation.metadata == {"status": "ready"}
        assert [tool.name for tool in await client.list_tools()][:2] == ["say", "note"]
        assert await client.call_tool("note", text="one") == ["one"]
        result = await client.step(CallToolAction("note", {"text": "two"}))
        assert (result.observation.result["data"], result.reward, result.done) == (["one", "two"], 0.1, False)
        state = await client.state()
        assert (state.episode_id, state.step_count) == ("e", 1)
        for call, words in ((client.call_tool("fail", reason="because"), "because"), (client.call_tool("no"), "Unknown tool")):
            with pytest.raises(ToolFailed, match=words):
                await call
        other = await client.new_session()
        assert await other.call_tool("note", text="mine") == ["mine"]


async def test_sessions_on_a_server_alone_end_with_their_clients(launch: Any) -> None:
    server = launch("toolbox", venvs.OPENENV_0_10, {"MAX_SESSIONS": "1"})
    for _ in range(3):
        async with MCPToolClient(server.base_url, mode="production") as client:
            assert await _admitted(client) == "hi"
            with pytest.raises(CapacityReached) as full:
                await MCPToolClient(server.base_url, mode="production").connect()
            assert (full.value.active_sessions, full.value.max_sessions) == (1, 1)
            assert str(full.value).endswith("(code: CAPACITY_REACHED)")


async def _admitted(client: MCPToolClient) -> Any:
    """The place of the client before may take a moment to become free."""
    async with asyncio.timeout(10):
        while True:
            try:
                return await client.call_tool("say", text="hi")
            except CapacityReached:
                await asyncio.sleep(0.05)


async def test_a_cancelled_connect_never_keeps_the_one_place_of_a_server_alone(launch: Any) -> None:
    server = launch("toolbox", venvs.OPENENV_0_10, {"MAX_SESSIONS": "1"})

    clients: list[MCPToolClient] = []

    def connect() -> Coroutine[Any, Any, object]:
        clients.append(MCPToolClient(server.base_url, mode="production"))
        return clients[-1]._connect_async()

    points = 0
    async for _ in every_await_point(connect):
        async with MCPToolClient(server.base_url, mode="production") as next_one:
            assert await _admitted(next_one) == "hi"
        await asyncio.sleep(0)
        points += 1
    assert points > 10
    await clients[-1].close()


async def test_a_tool_call_that_timed_out_on_a_server_alone_answers_no_other(newest: Arcade) -> None:
    async with MCPToolClient(newest.url("toolbox"), mode="production") as client:
        await client.reset()
        client._message_timeout = 0.3
        with pytest.raises(TimeoutError, match="the tool wait"):
            await client.call_tool("wait", seconds=1)
        client._message_timeout = 20.0
        assert await client.call_tool("say", text="after") == "after"


async def test_a_server_alone_that_is_killed_is_an_error_at_once(venv_python: Callable[[str], Path]) -> None:
    venv_python(venvs.OPENENV_0_10)
    with servers.launch("toolbox") as server:
        client = MCPToolClient(server.base_url, mode="production")
        await client.reset()
        server.kill()
        with pytest.raises(EpisodeLost):
            await asyncio.wait_for(client.call_tool("say", text="hi"), 5)
        with pytest.raises(EpisodeLost):
            await client.step(CallToolAction("say", {"text": "hi"}))
        with pytest.raises(ConnectionError):
            await asyncio.wait_for(client.reset(), 5)
        await client.close()


async def test_a_session_that_a_server_alone_has_ended_is_a_lost_episode(newest: Arcade) -> None:
    for call in ("call_tool", "list_tools"):
        client = MCPToolClient(newest.url("toolbox"), mode="production")
        await client.reset()
        wire: Any = client._link._wire
        await wire._frames.close()  # the server ends a session with its WebSocket
        async with asyncio.timeout(10):
            with pytest.raises(RpcFault, match="Unknown session_id"):
                while True:
                    await wire._session.peer.request("openenv/session/close", {"session_id": wire._session.id})
        with pytest.raises(EpisodeLost, match="the server has ended its session"):
            await (client.call_tool("say", text="hi") if call == "call_tool" else client.list_tools(use_cache=False))
        assert (await client.reset()).done is False
        await client.close()


@pytest.mark.parametrize("environment", ["counter", "no_schema"])
async def test_plain_actions_on_a_server_alone_want_the_gateway_in_front(newest: Arcade, environment: str) -> None:
    for _ in range(3):
        with pytest.raises(ConnectFailed, match="plain actions and no tools.*put the gateway in front"):
            await GenericEnvClient(newest.url(environment), mode="production").connect()


async def test_a_server_that_is_too_old_or_broken_is_named_as_such(arcade: Arcade) -> None:
    for environment in ("counter", "factory"):
        with pytest.raises((ConnectFailed, FactoryFailed)) as failed:
            await GenericEnvClient(arcade.url(environment), mode="production").connect()
        assert "episode" not in str(failed.value)
