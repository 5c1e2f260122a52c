"""The client's contract on real servers of every version: frames, sessions, refusals, ends, tools, and the old HTTP client.

The other sentences of the contract, which need no real server, are in tests/client/test_contract_*.py.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from testkit import servers, venvs
from testkit.arcade import Arcade
from testkit.same_program import program

from openenv_client import CallToolAction, GenericEnvClient, HTTPEnvClient, MCPToolClient, StepResult
from openenv_client.errors import CapacityReached, EnvironmentFault, EpisodeLost, FactoryFailed, LateReply, ToolFailed

pytestmark = pytest.mark.real


def test_one_program_sees_the_same_through_openenvs_client_and_ours(newest: Arcade, venv_python: Callable[[str], Path]) -> None:
    counter = newest.url("counter")
    lines = [f"played {counter}", f"played_sync {counter}", f"refused {newest.url('solo')}", "wrong -"]
    theirs = program(venv_python(venvs.OPENENV_0_10), "openenv.core", *lines)
    ours = program(sys.executable, "openenv_client", *lines)
    assert len(theirs) == 4 and len(theirs[0]) > 60
    assert ours == theirs


async def test_every_version_is_played_on_with_reset_step_and_state(arcade: Arcade) -> None:
    async with GenericEnvClient(arcade.url("counter")) as client:
        assert (await client.reset(seed=3, episode_id="e", label="red")).observation["value"] == 3
        result = await client.step({"amount": 5})
        assert (result.observation["board"], result.reward, result.done) == ("red: 3+5=8 of 20", 0.5, False)
        assert await client.state() == {
            "episode_id": "e", "step_count": 1, "value": 8, "target": 20, "label": "red", "resets": 1
        }  # fmt: skip


async def test_every_version_says_what_is_wrong_with_an_action(arcade: Arcade) -> None:
    async with GenericEnvClient(arcade.url("counter")) as client:
        await client.reset()
        with pytest.raises(RuntimeError) as failure:
            await client.step({"amount": 500})
        assert isinstance(failure.value, EnvironmentFault)
        assert str(failure.value) == f"Server error: {failure.value.message} (code: {failure.value.code})"
        assert (await client.step({"amount": 1})).observation["value"] == 1


async def test_a_full_server_of_every_version_refuses_with_the_same_error_100_times_of_100(arcade: Arcade) -> None:
    async with GenericEnvClient(arcade.url("duo")) as first, GenericEnvClient(arcade.url("duo")) as second:
        for holder in (first, second):
            await admitted(holder)
        for number in range(100):
            async with GenericEnvClient(arcade.url("duo")) as client:
                with pytest.raises(RuntimeError) as refusal:
                    await (client.reset() if number % 2 else client.state())
            assert isinstance(refusal.value, CapacityReached), refusal.value
            assert (refusal.value.active_sessions, refusal.value.max_sessions) == (2, 2)


async def admitted(client: GenericEnvClient) -> None:
    """Other tests' sessions may take a moment to end."""
    for _ in range(100):
        try:
            await client.reset()
            return
        except CapacityReached:
            await asyncio.sleep(0.05)
    raise AssertionError("no session became free within 5 s")


async def test_a_broken_factory_of_every_version_is_told(arcade: Arcade) -> None:
    async with GenericEnvClient(arcade.url("factory")) as client:
        with pytest.raises(FactoryFailed, match="FACTORY_ERROR"):
            await client.reset()


async def test_after_a_timeout_the_episode_is_lost_and_reset_recovers(arcade: Arcade) -> None:
    async with GenericEnvClient(arcade.url("faulty")) as client:
        await client.reset()
        with pytest.raises(TimeoutError):
            await client.step({"do": "sleep", "seconds": 0.5}, timeout_s=0.1)
        with pytest.raises(EpisodeLost):
            await client.step({"do": "nothing"})
        await client.reset()
        assert (await client.step({"do": "nothing"})).observation["did"] == "nothing"


async def test_with_late_reply_s_the_episode_survives_a_timeout(arcade: Arcade) -> None:
    async with GenericEnvClient(arcade.url("faulty"), late_reply_s=20) as client:
        await client.reset(episode_id="survives")
        with pytest.raises(TimeoutError):
            await client.step({"do": "sleep", "seconds": 0.5}, timeout_s=0.1)
        with pytest.raises(LateReply) as late:
            await client.step({"do": "nothing"})
        assert late.value.result.observation["did"] == "sleep"
        assert (await client.state())["episode_id"] == "survives"
        assert (await client.step({"do": "nothing"})).observation["did"] == "nothing"


async def test_tools_of_every_version_are_listed_and_called(arcade: Arcade) -> None:
    async with MCPToolClient(arcade.url("toolbox")) as client:
        assert {"say", "note", "fail", "finish"} <= {tool.name for tool in await client.list_tools()}
        tool = await client.get_tool("say")
        assert tool is not None and tool.input_schema["properties"]["text"]["type"] == "string"
        await client.reset()
        assert await client.call_tool("say", text="hi") == "hi"
        result = await client.step(CallToolAction("note", {"text": "one"}))
        assert (result.reward, result.done, result.observation.tool_name) == (0.1, False, "note")
        other = await client.new_session()
        await other.reset()
        assert await other.call_tool("note", text="other") == ["other"]
        with pytest.raises(ToolFailed, match=r"^Tool 'nothing' failed: "):
            await client.call_tool("nothing")
        assert (await client.step(CallToolAction("finish"))).done is True


async def test_an_environment_without_tools_is_an_error_and_no_empty_list(arcade: Arcade) -> None:
    async with MCPToolClient(arcade.url("counter")) as client:
        with pytest.raises(RuntimeError):
            await client.list_tools()


async def test_a_killed_server_is_an_error_at_once_and_reset_recovers_on_the_next_one(
    venv_python: Callable[[str], Path],
) -> None:
    venv_python(venvs.OPENENV_0_10)
    with servers.launch("faulty") as server:
        port = server.base_url.rpartition(":")[2]
        client = GenericEnvClient(server.base_url)
        await client.reset()
        server.kill()  # between two steps
        with pytest.raises(EpisodeLost):
            await asyncio.wait_for(client.step({"do": "nothing"}), 5)
    with pytest.raises(ConnectionError):
        await client.reset()
    with servers.launch_command(servers.command("faulty", port=port), servers.ENVIRONMENTS) as server:
        assert (await client.reset()).observation["did"] == "reset"
        with pytest.raises(EpisodeLost, match="broke"):
            await asyncio.wait_for(client.step({"do": "exit"}), 10)  # in the middle of one
        server.wait(10)
    await client.close()


# Versions that have no arcade


async def test_0_2_0_is_played_on(launch: Any) -> None:
    server = launch("counter", venvs.OPENENV_CORE_0_2_0, {"MAX_SESSIONS": "2"})
    async with GenericEnvClient(server.base_url) as client:
        assert (await client.reset(seed=3)).observation["value"] == 3
        assert (await client.step({"amount": 5})).reward == 0.5
        assert (await client.state())["value"] == 8
        with pytest.raises(EnvironmentFault):
            await client.step({"amount": 500})
        other = await client.new_session()
        assert (await other.reset()).observation["value"] == 0
        async with GenericEnvClient(server.base_url) as third:
            with pytest.raises(CapacityReached) as refusal:
                await third.reset()
            assert refusal.value.max_sessions == 2


class OldClient(HTTPEnvClient[dict[str, Any], dict[str, Any]]):
    def _step_payload(self, action: dict[str, Any]) -> dict[str, Any]:
        return action

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[dict[str, Any]]:
        return StepResult(payload["observation"], payload["reward"], payload["done"])

    def _parse_state(self, payload: dict[str, Any]) -> dict[str, Any]:
        return payload


def test_the_old_client_plays_on_0_1_as_ever(launch: Any) -> None:
    server = launch("echo_0_1", venvs.OPENENV_CORE_0_1)
    with OldClient(server.base_url) as client:
        assert client.reset() == StepResult({"echoed": "ready", "n": 0}, 0.0, False)
        assert client.step({"message": "hi"}) == StepResult({"echoed": "hi", "n": 1}, 2.0, False)
        assert client.step({"message": "you"}) == StepResult({"echoed": "you", "n": 2}, 3.0, False)
        assert client.state() == {"episode_id": "only", "step_count": 2}
        with pytest.raises(EnvironmentFault, match="HTTP 500"):
            client.step({"nonsense": 1})
        assert client.step({"message": "on"}).observation["n"] == 3


def test_the_old_client_hears_a_slow_steps_outcome_on_0_1(launch: Any) -> None:
    server = launch("echo_0_1", venvs.OPENENV_CORE_0_1)
    with OldClient(server.base_url, request_timeout_s=0.5) as client:
        client.reset()
        with pytest.raises(TimeoutError):
            client.step({"message": "slow", "delay": 0.8})
        with pytest.raises(LateReply) as late:
            client.step({"message": "impatient"})
        assert late.value.result.observation == {"echoed": "slow", "n": 1}
        assert client.step({"message": "now"}).observation["n"] == 2


def test_the_old_client_plays_many_steps_on_newer_servers(arcade: Arcade) -> None:
    with OldClient(arcade.url("counter")) as client:
        client.reset(seed=3)
        assert [client.step({"amount": 2}).observation["value"] for _ in range(3)] == [5, 7, 9]
        assert client.state()["step_count"] == 3
