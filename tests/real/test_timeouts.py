"""A step that outlasts its timeout: its late outcome is told once, answers no other call, and nothing is executed twice."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from testkit import agents
from testkit.agents import connected
from testkit.arcade import Arcade
from testkit.witness import Watched, watching

pytestmark = pytest.mark.real

SLOW = {"do": "sleep", "seconds": 0.8}
SLEPT = {"did": "sleep", "value": 0.8}
ERAS = (agents.MCP_2_LEGACY, agents.MCP_2_MODERN)


@pytest.fixture(scope="module")
def front(arcade: Arcade) -> Iterator[Watched]:
    """A gateway that waits 0.3 s for a step."""
    with watching(*[arcade.spec(name, "step_timeout_s=0.3") for name in ("faulty", "toolbox")]) as watched:
        yield watched


def told_late(late: dict[str, Any]) -> dict[str, Any]:
    """What a late note says of the observation."""
    observation: dict[str, Any] = {key: value for key, value in late["observation"].items() if key != "metadata"}
    return observation


@pytest.mark.parametrize("kind", [*ERAS, agents.MCP_1])
async def test_the_late_observation_is_told_beside_the_next_calls_own_answer_and_never_as_it(front: Watched, kind: str) -> None:
    async with connected(kind, front.url("faulty")) as agent:
        await agent.reset()
        error = await agent.fail("step", **SLOW)
        assert error["code"] == "TIMEOUT"
        assert "No reply to step within 0.3 s; it was sent and its outcome is unknown" in error["cause"]
        assert "ask for the state before acting again" in error["next_step"]
        state = await agent.play("state")
        assert state["state"]["step_count"] == 1
        assert "observation" not in state
        assert (state["late"]["tool"], told_late(state["late"]), state["late"]["reward"]) == ("step", SLEPT, 0.8)
        played = await agent.play("step", do="nothing")
        assert (played["observation"]["did"], "late" in played) == ("nothing", False)
        assert (await agent.play("state"))["state"]["step_count"] == 2


@pytest.mark.parametrize("kind", ERAS)
async def test_a_step_that_is_retried_after_a_timeout_is_not_executed_twice(front: Watched, kind: str) -> None:
    async with connected(kind, front.url("faulty")) as agent:
        await agent.reset()
        assert (await agent.fail("step", **SLOW))["code"] == "TIMEOUT"
        retried = await agent.call("step", **SLOW)
        error = retried["_meta"]["openenv/error"]
        assert (error["code"], error["retryable"]) == ("PREVIOUS_ACTION_LATE", True)
        assert "NOT executed" in error["cause"]
        assert '"did":"sleep"' in retried["content"][0]["text"].replace(" ", ""), "the outcome is told"
        assert (await agent.play("state"))["state"]["step_count"] == 1
        assert (await agent.play("step", do="nothing"))["observation"]["did"] == "nothing"


async def test_a_late_tool_result_of_an_mcp_environment_is_told_in_the_same_way(front: Watched) -> None:
    async with connected(agents.MCP_2_AUTO, front.url("toolbox")) as agent:
        await agent.reset()
        assert (await agent.fail("wait", seconds=0.8))["code"] == "TIMEOUT"
        retried = await agent.call("wait", seconds=0.8)
        assert retried["_meta"]["openenv/error"]["code"] == "PREVIOUS_ACTION_LATE"
        assert "waited 0.8 s" in retried["content"][0]["text"]
        assert (await agent.play("state"))["state"]["step_count"] == 1
        assert (await agent.play("say", text="hi"))["observation"]["result"] == {"result": "hi"}


@pytest.mark.parametrize("kind", ERAS)
async def test_a_client_that_gives_up_first_and_tries_again_does_not_act_twice(newest: Arcade, kind: str) -> None:
    """As frameworks do whose own patience is shorter than a step (by dropping the request, or with a cancellation)."""
    with watching(newest.spec("faulty")) as watched:
        async with connected(kind, watched.gateway.url("faulty")) as agent:  # not through the witness: it would keep the call
            await agent.reset()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await agent.call("step", **SLOW)
            assert (await agent.fail("step", **SLOW))["code"] == "PREVIOUS_ACTION_LATE"
            assert (await agent.play("state"))["state"]["step_count"] == 1
        async with connected(kind, watched.url("faulty")) as agent:
            await agent.tools()


async def test_a_reply_that_does_not_come_in_time_loses_the_episode_and_reset_starts_another(newest: Arcade) -> None:
    with watching(newest.spec("faulty", "step_timeout_s=0.1&late_reply_s=0.1")) as watched:
        async with connected(agents.MCP_2_LEGACY, watched.url("faulty")) as agent:
            await agent.reset()
            assert (await agent.fail("step", **SLOW))["code"] == "TIMEOUT"
            lost = await agent.fail("state")
            assert (lost["code"], lost["next_step"]) == ("EPISODE_LOST", "Call reset to start a new episode.")
            assert "the reply to an earlier step did not come" in lost["cause"]
            assert (await agent.fail("step", do="nothing"))["code"] == "EPISODE_LOST"
            assert (await agent.reset())["observation"]["did"] == "reset"
            assert (await agent.play("step", do="nothing"))["observation"]["did"] == "nothing"


async def test_a_timeout_of_one_tool_can_be_set_apart_in_the_configuration_file(newest: Arcade, tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text(
        f'[environments.toolbox]\nsource = "{newest.url("toolbox")}"\nstep_timeout_s = 0.2\ntool_timeout_s = {{ wait = 5 }}\n'
    )
    with watching(config=file) as watched:
        async with connected(agents.MCP_2_AUTO, watched.url("toolbox")) as agent:
            await agent.reset()
            assert (await agent.play("wait", seconds=0.5))["observation"]["result"] == {"result": "waited 0.5 s"}
