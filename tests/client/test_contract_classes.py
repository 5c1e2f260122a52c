"""The client's contract: results, the generic client, the tool client, and the old HTTP client."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, cast

import pytest
from starlette.responses import PlainTextResponse
from testkit.clients import NeedsImage
from testkit.old_server import OldServer
from testkit.script import Turn, error, observation
from testkit.scripted import ScriptedServer

from openenv_client import (
    CallToolAction,
    GenericAction,
    GenericEnvClient,
    HTTPEnvClient,
    ListToolsAction,
    MCPToolClient,
    StepResult,
    Tool,
    ToolState,
)
from openenv_client.errors import BadReply, EnvironmentFault, EpisodeLost, LateReply, ReplyTimeout, ToolFailed


def test_a_step_result_has_reward_done_and_metadata_of_its_own_accord() -> None:
    assert StepResult({"a": 1}) == StepResult({"a": 1}, reward=None, done=False, metadata=None)
    assert StepResult(1, 0.5, True, {"m": 1}).metadata == {"m": 1}


# GenericEnvClient


def test_a_generic_action_is_a_dictionary_of_keyword_arguments_that_shows_itself() -> None:
    action = GenericAction(code="x = 1", timeout=30)
    assert action == {"code": "x = 1", "timeout": 30}
    assert repr(action) == "GenericAction(code='x = 1', timeout=30)"


class Pydantic:
    """Looks like a pydantic model."""

    def model_dump(self) -> dict[str, Any]:
        return {"add": 1}


@dataclass
class Plain:
    """Has attributes."""

    add: int = 1


@pytest.mark.parametrize("action", [{"add": 1}, GenericAction(add=1), Pydantic(), Plain(), [("add", 1)]])
async def test_a_generic_client_takes_whatever_can_be_a_dictionary(action: Any) -> None:
    async with ScriptedServer() as server, GenericEnvClient(server.url) as client:
        result = await client.step(action)
        assert result == StepResult({"count": 1, "echo": {"add": 1}}, 1.0, False, None)
        assert await client.state() == {"count": 1}


async def test_what_cannot_be_an_action_is_refused_before_anything_is_sent() -> None:
    async with ScriptedServer() as server, GenericEnvClient(server.url) as client:
        with pytest.raises(TypeError):
            await client.step(cast(Any, 7))
        assert server.requests == []


async def test_a_generic_result_has_the_frames_metadata() -> None:
    frame = observation(0.5, True, count=1)
    frame["data"]["metadata"] = {"steps": 1}
    async with ScriptedServer([Turn(frame)]) as server, GenericEnvClient(server.url) as client:
        assert await client.step({}) == StepResult({"count": 1}, 0.5, True, {"steps": 1})


# MCPToolClient

TOOLS = [
    {"name": "say", "description": "Say it.", "input_schema": {"type": "object"}},
    {"name": "old", "description": None, "inputSchema": {"type": "object", "title": "Old"}},
]
LISTED = [Tool("say", "Say it.", {"type": "object"}), Tool("old", "", {"type": "object", "title": "Old"})]
LIST = {"type": "step", "data": {"type": "list_tools"}}


def call(name: str, /, **arguments: Any) -> dict[str, Any]:
    return {"type": "step", "data": {"type": "call_tool", "tool_name": name, "arguments": arguments}}


def answer(result: Any = None, failure: Any = None) -> dict[str, Any]:
    return observation(0.1, tool_name="say", result=result, error=failure)


async def test_list_tools_is_a_step_whose_answer_is_remembered_unless_told() -> None:
    script = [Turn(observation(tools=TOOLS), LIST), Turn(observation(tools=TOOLS[:1]), LIST)]
    async with ScriptedServer(script) as server, MCPToolClient(server.url) as client:
        assert await client.list_tools() == LISTED
        assert await client.list_tools() == LISTED
        assert await client.list_tools(use_cache=False) == LISTED[:1]


async def test_get_tool_and_has_tool_look_into_the_list() -> None:
    async with ScriptedServer([Turn(observation(tools=TOOLS), LIST)]) as server, MCPToolClient(server.url) as client:
        assert (await client.get_tool("old"), await client.get_tool("new")) == (LISTED[1], None)
        assert (await client.has_tool("say"), await client.has_tool("new")) == (True, False)


def test_the_tool_client_works_in_sync_code() -> None:
    async def play() -> None:
        script = [Turn(observation(tools=TOOLS), LIST), Turn(answer({"data": 3}), call("say", text="hi"))]
        async with ScriptedServer(script) as server:
            await asyncio.to_thread(use, server.url)

    def use(url: str) -> None:
        with MCPToolClient(url).sync() as client:
            assert client.has_tool("say") is True
            assert client.call_tool("say", text="hi") == 3
            assert client.get_tool("old") == LISTED[1]
            with pytest.raises(TypeError, match="needs the name"):
                client.call_tool()

    asyncio.run(play())


@pytest.mark.parametrize(
    ("reply", "failure", "text"),
    [
        (observation(echo="nothing"), BadReply, "no list of tools"),
        (observation(tools=[{"description": "?"}]), BadReply, "a tool"),
        (error("VALIDATION_ERROR", "Invalid message"), EnvironmentFault, "Invalid message"),
    ],
)
async def test_list_tools_raises_what_went_wrong_and_is_never_empty_for_a_failure(
    reply: Any, failure: type[Exception], text: str
) -> None:
    async with ScriptedServer([Turn(reply, LIST)]) as server, MCPToolClient(server.url) as client:
        with pytest.raises(failure, match=text):
            await client.list_tools()


async def test_list_tools_of_a_server_that_dies_is_an_error() -> None:
    async with ScriptedServer() as server, MCPToolClient(server.url) as client:
        server.hold_reply()
        listing = asyncio.ensure_future(client.list_tools())
        await server.until(lambda: len(server.requests) == 1)
        server.cut()
        with pytest.raises(EpisodeLost):
            await listing


async def test_an_environment_without_tools_has_an_empty_list() -> None:
    async with ScriptedServer([Turn(observation(tools=[]), LIST)]) as server, MCPToolClient(server.url) as client:
        assert await client.list_tools() == []


@pytest.mark.parametrize(
    ("result", "returned"),
    [({"data": 3, "content": []}, 3), ({"content": [1]}, {"content": [1]}), ("text", "text"), (None, None)],
)
async def test_call_tool_returns_the_data_of_the_result_or_all_of_it(result: Any, returned: Any) -> None:
    async with ScriptedServer([Turn(answer(result), call("say", text="hi"))]) as server, MCPToolClient(server.url) as client:
        assert await client.call_tool("say", text="hi") == returned


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        ({"error_type": "tool_not_found", "message": "no such"}, "Tool 'say' failed: no such (type: tool_not_found)"),
        ("broken", "Tool 'say' failed: broken"),
    ],
)
async def test_a_failed_tool_is_a_runtime_error_that_names_it(failure: Any, text: str) -> None:
    async with ScriptedServer([Turn(answer(failure=failure))]) as server, MCPToolClient(server.url) as client:
        with pytest.raises(RuntimeError) as raised:
            await client.call_tool("say")
        assert str(raised.value) == text and isinstance(raised.value, ToolFailed)


async def test_the_tools_name_may_be_a_keyword_and_a_tool_may_have_an_argument_called_name() -> None:
    script = [Turn(answer("hi"), call("greet", name="Ada")), Turn(answer("ho"), call("say", text="ho"))]
    async with ScriptedServer(script) as server, MCPToolClient(server.url) as client:
        assert await client.call_tool("greet", name="Ada") == "hi"
        assert await client.call_tool(name="say", text="ho") == "ho"


class TheirCallToolAction:
    """Looks like OpenEnv's own."""

    type, tool_name, metadata = "call_tool", "say", {"m": 1}
    arguments = {"text": "hi"}


@pytest.mark.parametrize(
    "action",
    [CallToolAction("say", {"text": "hi"}), TheirCallToolAction(), call("say", text="hi")["data"]],
)
async def test_a_step_takes_our_action_openenvs_and_a_dictionary_and_gives_the_whole_result(action: Any) -> None:
    script = [Turn(answer("hi"), call("say", text="hi"))]
    async with ScriptedServer(script) as server, MCPToolClient(server.url) as client:
        result = await client.step(action)
    assert (result.reward, result.done, result.observation.tool_name) == (0.1, False, "say")
    assert (result.observation.result, result.observation.error, result.observation.reward) == ("hi", None, 0.1)


async def test_what_is_no_action_is_refused_by_the_tool_client() -> None:
    async with ScriptedServer([]) as server, MCPToolClient(server.url) as client:
        with pytest.raises(TypeError, match="is no action"):
            await client.step("say hi")


async def test_observations_have_the_environments_own_fields_and_tools_as_attributes() -> None:
    script = [
        Turn(observation(tools=TOOLS), LIST),
        Turn(observation(1.0, True, board="x", metadata={"m": 1})),
        Turn(answer(failure={"error_type": "timeout", "message": "slow"})),
        Turn({"type": "state", "data": {"episode_id": "e", "level": 3}}),
    ]
    async with ScriptedServer(script) as server, MCPToolClient(server.url) as client:
        assert (await client.step(ListToolsAction())).observation.tools == LISTED
        seen = (await client.reset()).observation
        assert (seen.board, seen.done, seen.reward, seen.metadata) == ("x", True, 1.0, {"m": 1})
        failed = (await client.step(CallToolAction("say"))).observation
        assert (failed.error.message, failed.error.error_type.value) == ("slow", "timeout")
        assert failed.model_dump()["error"] == {"message": "slow", "error_type": {"value": "timeout"}}
        assert await client.state() == ToolState(episode_id="e", step_count=0, level=3)


# HTTPEnvClient


@dataclass(frozen=True)
class Say:
    """An action of the old echo environment."""

    message: str


class OldClient(HTTPEnvClient[Say, dict[str, Any]]):
    """As users of 0.1 wrote them."""

    def _step_payload(self, action: Say) -> dict[str, Any]:
        return {"message": action.message}

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[dict[str, Any]]:
        return StepResult(payload["observation"], payload["reward"], payload["done"])

    def _parse_state(self, payload: dict[str, Any]) -> Any:
        return payload["step_count"]


async def blocking(play: Any, *arguments: Any) -> Any:
    return await asyncio.wait_for(asyncio.to_thread(play, *arguments), 20)


def play_old(url: str) -> list[Any]:
    client = OldClient(base_url=url, request_timeout_s=5, default_headers={"X-Team": "blue"})
    seen: list[Any] = [client.reset(), client.step(Say("hi")), client.step(Say("ho")), client.state()]
    client.close()
    return seen


async def test_the_old_client_plays_on_an_old_server_over_http() -> None:
    async with OldServer() as server:
        assert await blocking(play_old, server.url) == [
            StepResult({"echoed": "ready", "n": 0}, 0.0, False),
            StepResult({"echoed": "hi", "n": 1}, 2.0, False),
            StepResult({"echoed": "ho", "n": 2}, 2.0, False),
            2,
        ]


async def test_the_old_client_keeps_one_session_on_a_newer_server() -> None:
    def respond(session: int, frame: Any) -> Any:
        steps.append(frame["type"])
        if frame["type"] == "state":
            return {"type": "state", "data": {"step_count": steps.count("step")}}
        return observation(1.0, n=steps.count("step"), session=session)

    steps: list[str] = []
    async with ScriptedServer(respond=respond) as server:
        seen = await blocking(play_old, server.url)
        assert [result.observation for result in seen[:3]] == [{"n": n, "session": 1} for n in (0, 1, 2)]
        assert (seen[3], server.sessions_opened, server.handshakes[0].headers["X-Team"]) == (2, 1, "blue")


async def test_an_old_servers_bare_500_is_a_runtime_error() -> None:
    def play(url: str) -> None:
        with OldClient(url) as client, pytest.raises(RuntimeError, match="HTTP 500"):
            client.step(Say("nonsense"))

    async with OldServer() as server:
        server.answers["/step"] = PlainTextResponse("Internal Server Error", 500)
        await blocking(play, server.url)


async def test_a_slow_step_times_out_and_the_next_one_hears_its_outcome() -> None:
    async with OldServer() as server:
        client = OldClient(server.url, request_timeout_s=0.1)

        def time_out() -> None:
            client.reset()
            loop.call_soon_threadsafe(server.hold)
            with pytest.raises(ReplyTimeout):
                client.step(Say("slow"))

        def go_on() -> tuple[Any, Any]:
            with pytest.raises(LateReply) as late:
                client.step(Say("impatient"))
            return late.value.result.observation, client.state()

        loop = asyncio.get_running_loop()
        await blocking(time_out)
        server.release.set()
        assert await blocking(go_on) == ({"echoed": "slow", "n": 1}, 1)
        await blocking(client.close)


async def test_the_old_clients_errors_name_the_address() -> None:
    def play() -> str:
        with OldClient("http://127.0.0.1:1") as client, pytest.raises(ConnectionError) as failure:
            client.reset()
        return str(failure.value)

    assert (await blocking(play)).startswith("Failed to connect to ws://127.0.0.1:1/ws: ")


async def test_the_old_client_starts_an_image_at_once_and_close_stops_it() -> None:
    async with OldServer() as server:
        provider = NeedsImage(server.url)

        def play() -> Any:
            client = OldClient.from_docker_image("echo:1", provider, env_vars={"A": "1"})
            assert isinstance(client, OldClient)
            seen = client.reset().observation
            client.close()
            return seen

        assert await blocking(play) == {"echoed": "ready", "n": 0}
        assert provider.verbs == ["start_container", "wait_for_ready", "stop_container"]
        assert provider.calls[0][1:] == ("echo:1", {"port": None, "env_vars": {"A": "1"}})


async def test_an_image_that_cannot_be_reached_is_stopped() -> None:
    provider = NeedsImage("http://127.0.0.1:1")
    with pytest.raises(ConnectionError):
        await blocking(OldClient.from_docker_image, "x", provider)
    assert provider.verbs[-1] == "stop_container"
