"""The prompt `play`."""

from __future__ import annotations

from typing import Any

import pytest
from testkit import catalog
from testkit.kernels import LATEST, REVISIONS, JudgedKernel, kernel_for, session
from testkit.scripted import ScriptedServer

from openenv_client.frames import JsonObject
from openenv_gateway.mcp.caller import Caller
from openenv_gateway.mcp.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS
from openenv_gateway.mcp.revisions import Revision


async def played(kernel: JudgedKernel, caller: Caller | None = None, **arguments: Any) -> str:
    """The text of the prompt."""
    result = await kernel.ask("prompts/get", {"name": "play", "arguments": arguments}, caller)
    (message,) = result["messages"]
    assert message["role"] == "user"
    text: str = message["content"]["text"]
    return text


@pytest.mark.parametrize("revision", REVISIONS)
async def test_there_is_one_prompt_in_every_revision_though_the_server_is_away(revision: Revision) -> None:
    async with kernel_for("http://127.0.0.1:9") as kernel:
        (prompt,) = (await kernel.ask("prompts/list", caller=session(revision)))["prompts"]
        assert prompt["name"] == "play"
        assert "counting" in prompt["description"]
        assert [argument["name"] for argument in prompt["arguments"]] == ["goal", "tool"]
        assert not any(argument["required"] for argument in prompt["arguments"])
        refusal = await kernel.refusal("prompts/get", {"name": "play"}, session(revision))
        assert (refusal.code, refusal.data["code"]) == (INTERNAL_ERROR, "SERVER_UNREACHABLE")


@pytest.mark.parametrize("revision", REVISIONS)
async def test_it_says_what_the_environment_is_its_tools_what_to_read_and_when_it_is_over(revision: Revision) -> None:
    async with ScriptedServer() as server, kernel_for(server.url) as kernel:
        text = await played(kernel, session(revision))
        assert "Adds up what it is told." in text
        assert "- step: Takes one action in counting." in text
        assert "openenv://counting/readme" in text and "openenv://counting/schema" in text
        assert "When done is true the episode is over: call reset to play another." in text


async def test_it_speaks_of_handles_only_where_they_must_be_passed() -> None:
    async with ScriptedServer() as server, kernel_for(server.url) as kernel:
        assert "session_id" not in await played(kernel)
        assert "Pass the session_id that reset returned" in await played(kernel, Caller(LATEST))


async def test_a_goal_and_a_tool_are_told_where_they_are_given() -> None:
    async with ScriptedServer() as server, kernel_for(server.url) as kernel:
        text = await played(kernel, goal="Reach ten.", tool="step")
        assert text.endswith("Your goal: Reach ten.")
        assert '"add"' in text
        assert await played(kernel, goal="", tool="") == await played(kernel)


@pytest.mark.parametrize("env", ["chess_env", "connect4_env", "grid_world_env", "atari_env"])
async def test_recorded_environments_are_explained(env: str) -> None:
    async with ScriptedServer.recorded(env) as server, kernel_for(server.url) as kernel:
        text = await played(kernel)
        said = catalog.description(env).summary
        assert said is None or said.strip() in text


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"name": 1},
        {"name": "other"},
        {"name": "play", "arguments": []},
        {"name": "play", "arguments": {"goal": 1}},
        {"name": "play", "arguments": {"tool": "sstep"}},
    ],
)
async def test_another_prompt_or_a_misfit_is_refused(params: JsonObject) -> None:
    async with ScriptedServer() as server, kernel_for(server.url) as kernel:
        refusal = await kernel.refusal("prompts/get", params)
        assert refusal.code == INVALID_PARAMS
        assert "sstep" not in str(params) or "Did you mean step?" in refusal.message
