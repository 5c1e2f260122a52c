"""Every way in which a real server fails, as an agent and an operator see it through the gateway: what, why, what next."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from testkit import agents, cli, servers, venvs
from testkit.agents import connected
from testkit.arcade import Arcade
from testkit.commands import run
from testkit.leftovers import command_of, marked, new_mark, wait_until_gone
from testkit.witness import Watched, watching

pytestmark = pytest.mark.real

AT_ONCE_S = 10  # on a busy machine; waiting for the step's own time limit would take 60 s
PLAYED = ("faulty", "factory", "reset_raises", "reset_error", "no_ws")


@pytest.fixture(scope="module")
def front(arcade: Arcade) -> Iterator[Watched]:
    """A gateway in front of everything that fails and yet can be described. None of it has room for a session left over."""
    with watching(*[arcade.spec(name, "queue_timeout_s=1") for name in PLAYED]) as watched:
        yield watched


@asynccontextmanager
async def no_session_left(watched: Watched, arcade: Arcade) -> AsyncIterator[None]:
    """What happens inside leaves the gateway with no more connections to the server than before."""
    before = watched.gateway.connections_to(arcade.url(""))
    yield
    async with asyncio.timeout(5):
        while watched.gateway.connections_to(arcade.url("")) > before:  # noqa: ASYNC110
            await asyncio.sleep(0.05)  # another process's connections: nothing tells when they end


# --- environments that fail -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [agents.MCP_2_LEGACY, agents.MCP_2_MODERN])
async def test_a_broken_factory_is_told_at_every_call_and_leaves_no_session(arcade: Arcade, front: Watched, kind: str) -> None:
    async with connected(kind, front.url("factory")) as agent, no_session_left(front, arcade):
        for _ in range(3):
            error = await agent.fail("reset")
            assert (error["code"], error["retryable"]) == ("FACTORY_ERROR", False)
            assert "could not build its environment" in error["cause"] and "FaultyEnvironment" in error["cause"]
            assert "see the server's log" in error["next_step"]


async def test_a_reset_that_raises_is_told_as_a_failed_reset_and_leaves_no_session(arcade: Arcade, front: Watched) -> None:
    async with connected(agents.MCP_2_LEGACY, front.url("reset_raises")) as agent, no_session_left(front, arcade):
        error = await agent.fail("reset", seed=4)
        assert (error["code"], error["message"], error["action"]) == ("EXECUTION_ERROR", "no level today", {"seed": 4})
        assert "No new episode was started" in error["next_step"]
        assert (await agent.fail("step", do="nothing"))["message"] == "no level today", "the step needs a reset first"


async def test_a_reset_that_fails_in_its_metadata_is_told_as_a_failed_reset_where_the_server_tells_it(
    arcade: Arcade, front: Watched
) -> None:
    async with connected(agents.MCP_2_LEGACY, front.url("reset_error")) as agent:
        if arcade.package == venvs.OPENENV_0_10:
            async with no_session_left(front, arcade):
                error = await agent.fail("reset")
            assert (error["code"], error["message"]) == ("RESET_FAILED", "LEVEL_KEY is not set")
            assert "No new episode was started" in error["next_step"]
        else:  # these drop an observation's metadata
            played = await agent.reset()
            assert played["done"] is True
            assert played["notice"].startswith("The environment ended this episode in its reset.")


@pytest.mark.parametrize(("do", "said"), [("key_error", "'nowhere'"), ("bare_text", "99")])
async def test_a_step_that_raises_is_told_with_its_action_and_the_episode_goes_on(front: Watched, do: str, said: str) -> None:
    async with connected(agents.MCP_2_AUTO, front.url("faulty")) as agent:
        await agent.reset()
        error = await agent.fail("step", do=do)
        assert (error["code"], error["message"], error["action"]) == ("EXECUTION_ERROR", said, {"do": do})
        assert "said no more than: " + said in error["cause"], "a bare text is called one"
        assert (await agent.play("step", do="nothing"))["observation"]["did"] == "nothing"


async def test_not_a_number_arrives_as_null_in_a_result_that_is_valid_json(front: Watched) -> None:
    async with connected(agents.MCP_2_AUTO, front.url("faulty")) as agent:
        await agent.reset()
        played = await agent.play("step", do="not_a_number")
        assert (played["observation"]["value"], played["reward"], played["done"]) == (None, None, False)


async def test_a_refused_websocket_is_told_with_its_status_and_url(arcade: Arcade, front: Watched) -> None:
    async with connected(agents.MCP_2_AUTO, front.url("no_ws")) as agent, no_session_left(front, arcade):
        assert list(await agent.tools()) == ["reset", "step", "state"]
        error = await agent.fail("reset")
        assert (error["code"], error["retryable"]) == ("WEBSOCKET_REFUSED", False)
        assert f"{arcade.url('no_ws').replace('http', 'ws')}/ws with HTTP 403" in error["cause"]
        assert "check the URL and the server's version" in error["next_step"]


# --- servers that are no use ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("no_schema", "it has no /schema (HTTP 404); servers older than openenv-core 0.2 have none"),
        ("no_health", "HTTP 503 (it may still be starting): not today"),
        ("nothing_there", "HTTP 404"),
    ],
)
def test_a_server_that_cannot_be_used_ends_the_start_with_the_reason(newest: Arcade, name: str, cause: str) -> None:
    ended = run("serve", newest.spec(name), "--port", "0")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert cause in ended.stderr and newest.url(name) in ended.stderr
    assert "Next:  " in ended.stderr and "Traceback" not in ended.stderr


def test_a_server_that_nobody_runs_ends_the_start_with_the_reason() -> None:
    ended = run("serve", "gone=http://127.0.0.1:9", "--port", "0")  # the discard port
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "Cannot reach the environment server at http://127.0.0.1:9" in ended.stderr
    assert "Next:  Check that the environment server runs" in ended.stderr


def faulty(fault: str, options: str = "") -> str:
    """The spec that has the gateway launch a server with a fault."""
    command = shlex.join(["env", f"FAULT={fault}", "MAX_SESSIONS=1", *servers.command("faulty")])
    return f"faulty=cmd:{command}?max_servers=2{options}"


@pytest.fixture(scope="module")
def framework(venv_python: Callable[[str], Path]) -> Path:
    return venv_python(venvs.OPENENV_0_10)


def test_a_server_that_dies_at_start_ends_the_start_with_its_last_words(framework: Path) -> None:
    mark = new_mark()
    ended = run("serve", faulty("dies"), "--port", "0", mark=mark)
    assert ended.returncode == 1
    assert "its process exited prematurely with code 3" in ended.stderr
    assert "Last lines of its log:\ncannot find the level file: giving up" in ended.stderr
    assert "Next:  Read the server's last lines" in ended.stderr
    assert wait_until_gone(mark, 5) == []


def test_a_server_that_never_serves_is_given_up_and_ended(framework: Path) -> None:
    mark = new_mark()
    ended = run("serve", faulty("hangs", "&launch_timeout_s=4"), "--port", "0", mark=mark)
    assert ended.returncode == 1
    assert "did not become ready within 4.0 seconds" in ended.stderr
    assert "Next:  Allow more time if the server is only slow" in ended.stderr
    assert wait_until_gone(mark, 5) == []


async def test_the_broken_factory_of_a_launched_server_is_told_with_the_servers_log(framework: Path) -> None:
    """Its log is in the gateway alone: the agent's text is where a person finds the reason."""
    mark = new_mark()
    with watching(faulty("factory"), env=mark) as watched:
        async with connected(agents.MCP_2_AUTO, watched.url("faulty")) as agent:
            error = await agent.fail("reset")
    assert error["code"] == "FACTORY_ERROR"
    assert "RuntimeError: the game's level file is missing" in error["log"]
    assert wait_until_gone(mark, 5) == []


# --- servers that end in the middle of a game -------------------------------------------------------------------------


async def test_a_process_that_ends_in_mid_step_loses_its_own_episodes_alone_and_reset_starts_another_server(
    framework: Path,
) -> None:
    mark = new_mark()
    with watching(faulty(""), env=mark) as watched:
        async with (
            connected(agents.MCP_2_LEGACY, watched.url("faulty")) as unlucky,
            connected(agents.MCP_2_MODERN, watched.url("faulty")) as other,
        ):
            await asyncio.gather(unlucky.reset(), other.reset())
            async with asyncio.timeout(AT_ONCE_S):
                error = await unlucky.fail("step", do="exit")
            assert (error["code"], error["next_step"]) == ("EPISODE_LOST", "Call reset to start a new episode.")
            assert "the server died" in error["cause"]
            assert (await unlucky.fail("step", do="nothing"))["code"] == "EPISODE_LOST", "never moved in silence"
            assert (await unlucky.fail("state"))["code"] == "EPISODE_LOST"
            assert (await other.play("step", do="nothing"))["observation"]["did"] == "nothing"
            again = await unlucky.reset()
            assert (again["done"], again["observation"]["did"]) == (False, "reset")
            assert (await unlucky.play("step", do="nothing"))["reward"] == 0.0
            assert (await other.play("state"))["state"]["step_count"] == 1
            assert len([process for process in marked(mark) if command_of(process).split()[1:3] == ["-m", "uvicorn"]]) == 2
        log = watched.gateway.log()
    assert "the game crashed" in log, "the operator finds the server's last words"
    assert wait_until_gone(mark, 5) == []


async def test_a_server_that_somebody_else_runs_and_that_ends_is_unreachable_until_it_is_back(framework: Path) -> None:
    with servers.launch("faulty") as server, cli.serving(f"faulty={server.base_url}") as gateway:
        async with connected(agents.MCP_2_AUTO, gateway.url("faulty")) as agent:
            await agent.reset()
            assert (await agent.fail("step", do="exit"))["code"] == "EPISODE_LOST"
            error: dict[str, Any] = await agent.fail("reset")
            assert (error["code"], error["retryable"]) == ("SERVER_UNREACHABLE", True)
            assert server.base_url.rpartition(":")[2] in error["cause"]
            assert "Check that the environment server runs" in error["next_step"]


async def test_a_server_that_is_frozen_is_ended_with_the_gateway(framework: Path) -> None:
    """A stopped process answers nothing and takes no SIGTERM."""
    mark = new_mark()
    with watching(faulty("", "&step_timeout_s=0.3&late_reply_s=0.3"), env=mark) as watched:
        async with connected(agents.MCP_2_LEGACY, watched.url("faulty")) as agent:
            await agent.reset()
            assert (await agent.fail("step", do="freeze"))["code"] == "TIMEOUT"
            assert (await agent.fail("state"))["code"] == "EPISODE_LOST"
    assert wait_until_gone(mark, 5) == []
