"""Production mode against the gateway: the same client, the same calls, MCP on the wire."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from testkit.clients import Add, Count, CountingClient
from testkit.gateways import Served, environment_settings, serving
from testkit.http_relay import HttpRelay, Request, http_relay, rpc_error
from testkit.script import PAGES, error, observation
from testkit.scripted import ScriptedServer

from openenv_client import GenericEnvClient, StepResult
from openenv_client.errors import CapacityReached, EnvironmentFault, EpisodeLost, InvalidArguments, ToolFailed

SECRET = "t" * 40


def generic(url: str, **options: Any) -> GenericEnvClient:
    return GenericEnvClient(url, mode="production", **options)


def typed(url: str, **options: Any) -> CountingClient:
    return CountingClient(url, mode="production", **options)


@asynccontextmanager
async def gateway_on(server: ScriptedServer, **changes: Any) -> AsyncIterator[Served]:
    async with serving(environment_settings(server.url, **changes)) as served:
        yield served


def old_era(request: Request) -> bytes | None:
    """A gateway that knows no discovery."""
    return rpc_error(request, -32601, "Method not found") if request.rpc == "server/discover" else None


@pytest.fixture(params=["2026-07-28", "handshake"])
async def relay(request: pytest.FixtureRequest) -> AsyncIterator[HttpRelay]:
    """The counting environment behind the gateway behind a relay, in either era of MCP."""
    async with ScriptedServer() as server, gateway_on(server) as served:
        answer = (lambda _: None) if request.param == "2026-07-28" else old_era
        async with http_relay(served.base_url, answer) as relay:
            yield relay
        await server.until(lambda: server.sessions_open == 0)


async def test_a_typed_client_with_its_three_hooks_plays_as_in_simulation_mode(relay: HttpRelay) -> None:
    async with typed(relay.url) as client:
        assert await client.reset(seed=3) == StepResult(Count(0), None, False)
        assert [await client.step(Add(n)) for n in (2, 3)] == [StepResult(Count(2), 2.0), StepResult(Count(5), 3.0)]
        assert await client.state() == 5


async def test_no_frame_goes_to_ws_and_every_request_to_mcp(relay: HttpRelay) -> None:
    async with generic(relay.url) as client:
        await client.reset()
        await client.step({"add": 1})
        await client.state()
        await client.list_tools()
        await client.call_tool("step", add=1)
        other = await client.new_session()
        await other.step({"add": 1})
    assert {request.path for request in relay.requests} == {"/mcp"}
    assert relay.rpcs.count("tools/call") == 5
    assert relay.rpcs.count("openenv/session/create") == relay.rpcs.count("openenv/session/close") == 2
    sessions = [request for request in relay.requests if request.rpc.startswith("openenv/")]
    calls = [request for request in relay.requests if request.rpc == "tools/call"]
    versions = {request.headers["mcp-protocol-version"] for request in calls}
    assert versions in ({"2026-07-28"}, {"2025-11-25"}) and len(sessions) == 4
    if versions == {"2026-07-28"}:
        assert {request.headers["mcp-name"] for request in calls} == {"reset", "step", "state"}
        assert "DELETE" not in relay.rpcs
    else:
        assert len({request.headers["mcp-session-id"] for request in calls}) == 2
        assert relay.rpcs.count("DELETE") == 2


async def test_two_clients_never_share_an_episode(relay: HttpRelay) -> None:
    async with generic(relay.url) as one, generic(relay.url) as two:
        await asyncio.gather(one.reset(), two.reset())
        for _ in range(9):
            await asyncio.gather(one.step({"add": 1}), two.step({"add": -1}))
        assert await one.state() == {"count": 9}
        assert await two.state() == {"count": -9}


@pytest.mark.parametrize("place", ["/envs/counting", "/envs/counting/", "/envs/counting/mcp", "", "/mcp"])
async def test_the_url_is_the_environments_or_its_endpoint_or_the_gateways_where_it_serves_one(place: str) -> None:
    async with ScriptedServer() as server, gateway_on(server) as served, generic(served.base_url + place) as client:
        assert (await client.reset()).observation["count"] == 0


async def test_a_gateway_with_several_environments_wants_to_know_which() -> None:
    async with ScriptedServer() as server:
        both = environment_settings(server.url, "one"), environment_settings(server.url, "two")
        async with serving(*both) as served:
            with pytest.raises(ConnectionError, match=r"nothing there speaks MCP"):
                await generic(served.base_url).connect()
            async with generic(f"{served.base_url}/envs/two") as client:
                await client.reset()


async def test_tools_are_listed_without_the_sessions_argument_and_called_with_reward_and_done(relay: HttpRelay) -> None:
    async with generic(relay.url) as client:
        tools = {tool.name: tool.input_schema for tool in await client.list_tools()}
        assert list(tools) == ["reset", "step", "state"]
        assert (list(tools["step"]["properties"]), tools["state"]["properties"]) == (["add"], {})
        assert (await client.call_tool("reset", seed=1))["observation"] == {"count": 0, "echo": {"seed": 1}}
        stepped = await client.call_tool("step", add=4)
        assert (stepped["observation"]["count"], stepped["reward"], stepped["done"]) == (4, 4.0, False)
        assert (await client.call_tool("state"))["state"] == {"count": 4}
        with pytest.raises(ToolFailed, match="there is no such tool. Tools: reset, step, state"):
            await client.call_tool("fly")


async def test_a_step_before_the_first_reset_is_one_after_the_gateways_own() -> None:
    async with ScriptedServer() as server, gateway_on(server, reset={"seed": 7}) as served, generic(served.base_url) as client:
        assert (await client.step({"add": 2})).observation["count"] == 2
        assert [received.frame for received in server.requests][:1] == [{"type": "reset", "data": {"seed": 7}}]


async def test_an_action_that_does_not_fit_is_refused_before_the_environment_hears_of_it(relay: HttpRelay) -> None:
    async with generic(relay.url) as client:
        await client.reset()
        with pytest.raises(InvalidArguments, match=r"at add expected an integer") as refused:
            await client.step({"add": "x"})
        assert isinstance(refused.value, EnvironmentFault) and isinstance(refused.value, RuntimeError)
        for nonsense, kind in (({"add": {1}}, TypeError), ({"add": float("nan")}, ValueError)):
            with pytest.raises(kind):
                await client.step(nonsense)
        with pytest.raises(InvalidArguments, match="'session_id' names the gateway's session"):
            await client.step({"add": 1, "session_id": "mine"})
        assert (await client.step({"add": 1})).observation["count"] == 1


async def test_the_environments_own_errors_read_as_in_simulation_mode() -> None:
    def respond(session: int, frame: dict[str, Any]) -> Any:
        return error("EXECUTION_ERROR", "99") if frame["type"] == "step" else observation(count=0)

    async with ScriptedServer(respond=respond) as server, gateway_on(server) as served, generic(served.base_url) as client:
        await client.reset()
        with pytest.raises(EnvironmentFault) as fault:
            await client.step({"add": 1})
        assert (str(fault.value), fault.value.code) == ("Server error: 99 (code: EXECUTION_ERROR)", "EXECUTION_ERROR")


async def test_large_observations_pictures_and_tool_like_fields_come_as_they_are() -> None:
    picture = "iVBORw0KGgo" + "A" * 200_000
    seen: dict[str, Any] = {"screen": [0, 255, 7] * 4000, "screen_shape": [100, 40, 3], "pixels": picture, "text": "\u2028"}

    async with ScriptedServer(respond=lambda session, frame: observation(**seen)) as server:
        async with gateway_on(server, mapping_max_result_bytes=2000) as served, generic(served.base_url) as client:
            assert (await client.reset()).observation == seen
            assert (await client.step({"add": 1})).observation == seen


# --- what the operator allows ---------------------------------------------------------------------------------------


async def test_where_agents_may_not_reset_the_error_names_the_setting_and_stepping_works() -> None:
    async with ScriptedServer() as server, gateway_on(server, mapping_exposure="agent") as served:
        async with generic(served.base_url) as client:
            for call in (client.reset, client.state):
                with pytest.raises(PermissionError, match=r'exposure = "agent".*exposure = "full"'):
                    await call()
            assert (await client.call_tool("observe"))["observation"]["count"] == 0
            assert (await client.step({"add": 3})).observation["count"] == 3
            assert [tool.name for tool in await client.list_tools()] == ["step", "observe"]


@pytest.mark.parametrize(("place", "reward"), [("visible", 2.0), ("meta", 2.0), ("hidden", None)])
async def test_the_reward_is_there_unless_the_operator_hides_it(place: str, reward: float | None) -> None:
    async with ScriptedServer() as server, gateway_on(server, mapping_reward=place) as served:
        async with generic(served.base_url) as client:
            assert (await client.step({"add": 2})).reward == reward


async def test_a_token_goes_with_every_request_and_its_lack_is_told_at_connect(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(f"agent team {SECRET}\n")
    async with ScriptedServer() as server:
        async with serving(environment_settings(server.url), token_file=tokens) as served:
            with pytest.raises(ConnectionError, match="access refused"):
                await generic(served.base_url).connect()
            async with generic(served.base_url, headers={"Authorization": f"Bearer {SECRET}"}) as client:
                await client.reset()
                async with await client.new_session() as other:
                    await other.step({"add": 1})
                tokens.write_text(f"agent team {'u' * 40}\n")
                async with asyncio.timeout(10):
                    with pytest.raises(PermissionError, match="refused step"):
                        while True:
                            await client.step({"add": 0})


async def test_a_refusal_for_want_of_a_session_is_always_the_same_error_100_times_of_100() -> None:
    async with ScriptedServer(capacity=2) as server, gateway_on(server, timeouts_queue_s=0.01) as served:
        async with generic(served.base_url) as one, generic(served.base_url) as two:
            await one.reset()
            await two.reset()
            for number in range(100):
                async with generic(served.base_url) as client:
                    with pytest.raises(RuntimeError) as refusal:
                        await (client.reset() if number % 2 else client.step({"add": 1}))
                assert isinstance(refusal.value, CapacityReached), refusal.value
                assert (refusal.value.active_sessions, refusal.value.max_sessions) == (2, 2)
            await one.close()
            async with generic(served.base_url) as client:
                assert (await client.reset()).observation["count"] == 0


# --- ends -----------------------------------------------------------------------------------------------------------


async def test_a_client_that_closes_gives_its_place_back_at_once() -> None:
    async with ScriptedServer(capacity=1) as server, gateway_on(server, timeouts_queue_s=2) as served:
        for _ in range(5):
            async with generic(served.base_url) as client:
                await client.reset()
        assert server.sessions_opened >= 5


async def test_64_clients_opened_and_closed_leave_no_session_task_or_thread() -> None:
    async with ScriptedServer() as server, gateway_on(server) as served:
        before, threads = asyncio.all_tasks(), set(threading.enumerate())
        clients = [generic(served.base_url) for _ in range(64)]
        await asyncio.gather(*[client.reset() for client in clients])
        assert server.sessions_open == 64
        await asyncio.gather(*[client.close() for client in clients])
        await server.until(lambda: server.sessions_open == 0)
        lanes = next(iter(served.gateway.endpoints.values())).environment.lanes
        async with asyncio.timeout(5):
            while len(lanes) or _ours(before):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert set(threading.enumerate()) <= threads


def _ours(before: set[asyncio.Task[Any]]) -> set[str]:
    """New tasks of the client."""
    return {repr(task.get_coro()) for task in asyncio.all_tasks() - before if "openenv_client/mcp" in repr(task.get_coro())}


async def test_closing_ends_a_call_that_waits_and_takes_no_longer_than_about_a_second() -> None:
    async with ScriptedServer() as server, gateway_on(server) as served:
        client = generic(served.base_url)
        await client.reset()
        server.hold_reply()
        waiting = asyncio.ensure_future(client.step({"add": 1}))
        await server.until(lambda: len(server.requests) == 2)
        began = time.monotonic()
        await client.close()
        assert time.monotonic() - began < 3
        with pytest.raises(EpisodeLost, match="closed"):
            await waiting
        server.release_reply()
        await server.until(lambda: server.sessions_open == 0)


async def test_closing_does_not_wait_for_a_gateway_that_says_nothing_more() -> None:
    async with ScriptedServer() as server, gateway_on(server) as served, http_relay(served.base_url) as relay:
        client = generic(relay.url)
        await client.reset()
        relay.hold()
        began = time.monotonic()
        await client.close()
        assert time.monotonic() - began < 3


@pytest.fixture
def thread() -> Iterator[ThreadedGateway]:
    """The gateway on a loop in a thread of its own, for programs that block theirs."""
    with ThreadedGateway() as threaded:
        yield threaded


class ThreadedGateway:
    """A counting environment with room for one or two clients, behind a gateway."""

    def __init__(self) -> None:
        self._started, self._over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="gateway")
        self.url = ""
        self.server: ScriptedServer

    def __enter__(self) -> ThreadedGateway:
        self._thread.start()
        assert self._started.wait(20)
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join(20)

    async def _serve(self) -> None:
        async with ScriptedServer(capacity=2) as self.server, gateway_on(self.server) as served:
            self.url = served.base_url
            self._started.set()
            await asyncio.to_thread(self._over.wait, 60)


def test_a_sync_program_runs_unchanged(thread: ThreadedGateway) -> None:
    with typed(thread.url).sync() as env:
        assert env.reset().observation == Count(0)
        assert [env.step(Add(1)).observation.count for _ in range(3)] == [1, 2, 3]
        other = env.new_session()
        assert (other.reset().observation, env.state()) == (Count(0), 3)
    plain = typed(thread.url)
    assert plain.reset().observation == Count(0)
    plain.close()


def test_a_client_is_used_on_one_loop_after_another_and_gives_its_session_back_each_time(thread: ThreadedGateway) -> None:
    client = generic(thread.url)

    async def play() -> int:
        await client.reset()
        return int((await client.step({"add": 2})).observation["count"])

    assert [asyncio.run(play()) for _ in range(4)] == [2, 2, 2, 2]
    with pytest.raises(EpisodeLost, match="another event loop"):
        client.state()
    assert client.reset().observation["count"] == 0
    client.close()


# --- shapes of tools ------------------------------------------------------------------------------------------------


def acting(**properties: Any) -> dict[str, Any]:
    """The pages of a counting environment whose action has these properties too."""
    action = {"type": "object", "properties": {"add": {"type": "integer"}, **properties}, "required": ["add"]}
    return {"/schema": {**PAGES["/schema"], "action": action}}


async def test_an_action_may_have_a_session_id_of_its_own() -> None:
    async with ScriptedServer(pages=acting(session_id={"type": "string"})) as server, gateway_on(server) as served:
        async with generic(served.base_url) as client:
            await client.reset()
            result = await client.step({"add": 1, "session_id": "mine"})
            assert result.observation["echo"] == {"add": 1, "session_id": "mine"}


async def test_arguments_that_are_to_be_repeated_in_headers_are() -> None:
    properties = {
        "to": {"type": "string", "x-mcp-header": "To"},
        "deep": {"type": "object", "properties": {"fast": {"type": "boolean", "x-mcp-header": "Fast"}}},
    }
    async with ScriptedServer(pages=acting(**properties)) as server, gateway_on(server, mapping_schemas="native") as served:
        async with http_relay(served.base_url) as relay, generic(relay.url) as client:
            await client.reset()
            for action in ({"add": 1, "to": "Z\u00fcrich", "deep": {"fast": True}}, {"add": 1}, {"add": 1, "deep": {}}):
                assert (await client.step(action)).observation["echo"] == action
            first, second = [request.headers for request in relay.requests if request.headers.get("mcp-name") == "step"][:2]
            assert (first["mcp-param-to"], first["mcp-param-fast"]) == ("=?base64?WsO8cmljaA==?=", "true")
            assert "mcp-param-to" not in second


async def test_a_list_of_tools_in_several_pages_is_read_whole() -> None:
    async with ScriptedServer() as server, serving(environment_settings(server.url), page_size=1) as served:
        async with generic(served.base_url) as client:
            assert [tool.name for tool in await client.list_tools()] == ["reset", "step", "state"]


async def test_a_step_that_lasts_is_answered_in_a_stream() -> None:
    async with ScriptedServer() as server, gateway_on(server) as served, generic(served.base_url) as client:
        await client.reset()
        server.hold_reply()
        step = asyncio.ensure_future(client.step({"add": 1}))
        await asyncio.wait({step}, timeout=0.6)  # the gateway begins its stream after a quarter of a second
        server.release_reply()
        assert (await step).observation["count"] == 1
