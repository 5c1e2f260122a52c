"""`openenv-gateway stdio`, as hosts launch it: official clients play, stdout is JSON-RPC alone, and no end leaves anything."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from testkit import agents, cli, servers, venvs
from testkit.agents import connected
from testkit.arcade import Arcade
from testkit.commands import GATEWAY
from testkit.leftovers import command_of, marked, new_mark, wait_until_gone
from testkit.patience import patience
from testkit.stdio_host import HELLO, StdioHost
from testkit.witness import Verdicts

pytestmark = pytest.mark.real

GONE_WITHIN_S = 5.0
CHATTER = {"DEMO_CHATTER": "1"}


@pytest.fixture
def mark() -> Iterator[dict[str, str]]:
    """What everything of one test is marked with; nothing of it may be left."""
    mark = new_mark()
    yield mark
    left = wait_until_gone(mark, GONE_WITHIN_S)
    for process in left:
        os.kill(process, signal.SIGKILL)
    assert left == []


def launched(environment: str, **env: str) -> str:
    """The spec of a real environment that the gateway launches."""
    variables = [f"{name}={value}" for name, value in env.items()]
    return f"cmd:{shlex.join(['env', *variables, *servers.command(environment)])}?step_timeout_s=100"


def recorded(spec: str, folder: Path) -> list[str]:
    """The command of a stdio gateway whose whole stdin and stdout are kept in the folder."""
    gateway = shlex.join([*GATEWAY, "stdio", spec])
    return ["sh", "-c", f"tee {folder}/requests | {gateway} | tee {folder}/responses"]


def judge(folder: Path) -> Verdicts:
    """All that went over stdout: nothing but answers to the requests, each valid in its revision."""
    sent = [json.loads(line) for line in (folder / "requests").read_text().splitlines()]
    requests = {message["id"]: message for message in sent if "id" in message and "method" in message}
    verdicts = Verdicts()
    for line in (folder / "responses").read_text().splitlines():
        response = json.loads(line)
        request = requests.pop(response["id"])
        if request["method"] != "server/discover" or "result" in response:  # a probe may be refused
            verdicts.judge(request, response, None, "stdio")
    assert requests == {}, "requests without an answer"
    verdicts.check()
    return verdicts


# --- what is played --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", agents.KINDS)
async def test_the_demo_is_played_to_its_end_while_it_prints(kind: str, mark: dict[str, str], tmp_path: Path) -> None:
    async with connected(kind, recorded("demo", tmp_path), {**mark, **CHATTER}) as agent:
        tools = await agent.tools()
        assert all("session_id" not in tool["inputSchema"]["properties"] for tool in tools.values()), "one process, one lane"
        played = await agent.reset(seed=1)
        while not played["done"]:
            played = await agent.play("step", cell=played["observation"]["legal_moves"][0])
        assert (await agent.play("state"))["state"]["result"] != "playing"
        assert (await agent.fail("step", cell=1))["code"] == "EPISODE_OVER"
    seen = judge(tmp_path).seen
    revision = "2026-07-28" if kind in (agents.MCP_2_AUTO, agents.MCP_2_MODERN) else "2025-11-25"
    assert seen[revision, "tools/list"] >= 1 and seen[revision, "tools/call"] >= 6


@pytest.mark.parametrize("kind", [agents.MCP_2_AUTO, agents.MCP_1])
async def test_a_real_server_that_prints_a_megabyte_is_played(
    kind: str, mark: dict[str, str], tmp_path: Path, venv_python: Callable[[str], Path]
) -> None:
    venv_python(venvs.OPENENV_0_10)
    async with connected(kind, recorded(launched("faulty", FAULT="prints"), tmp_path), mark) as agent:
        await agent.reset()
        assert (await agent.play("step", do="nothing"))["observation"]["did"] == "nothing"
        assert (await agent.fail("step", do="bare_text"))["code"] == "EXECUTION_ERROR"
        assert (await agent.play("state"))["state"]["step_count"] == 2
    judge(tmp_path)


def test_the_handshake_is_answered_before_any_server_is_launched(mark: dict[str, str], tmp_path: Path) -> None:
    """Hosts give a stdio server about a second for it."""
    with StdioHost("demo", mark, tmp_path) as host:
        assert host.open()["serverInfo"]["name"] == "openenv-gateway"
        assert [command_of(process) for process in marked(mark) if "openenv_gateway.demo" in command_of(process)] == []
        assert host.call("step", cell=5)["isError"] is False
        assert [process for process in marked(mark) if "openenv_gateway.demo" in command_of(process)]


def test_lines_that_are_no_requests_are_answered_as_the_protocol_says_and_harm_nothing(
    mark: dict[str, str], tmp_path: Path
) -> None:
    with StdioHost("demo", mark, tmp_path) as host:
        host.open()
        notification = '{"jsonrpc": "2.0", "method": "notifications/x"}'
        for line in ("not json", '{"jsonrpc": "2.0", "id": 77}', '["batch"]', notification, ""):
            host.write_line(line)
        host.send("nope", {})
        host.end_of_file()
        assert host.process.wait(10) == 0
        answers = [json.loads(line) for line in host.unread()]
    errors = {answer["id"]: answer["error"]["code"] for answer in answers}
    assert len(answers) == 4 and errors[77] == -32600 and errors[2] == -32601
    assert {answer["error"]["code"] for answer in answers if answer["id"] is None} == {-32700, -32600}


def test_requests_from_a_pipe_that_ends_at_once_are_answered(mark: dict[str, str], tmp_path: Path) -> None:
    """`printf … | openenv-gateway stdio demo`"""
    with StdioHost("demo", mark, tmp_path) as host:
        host.send("initialize", HELLO)
        host.send("ping", {})
        host.end_of_file()
        assert host.process.wait(10) == 0
        assert [json.loads(line)["id"] for line in host.unread()] == [1, 2]


# --- the end ---------------------------------------------------------------------------------------------------------


def test_end_of_file_ends_everything(mark: dict[str, str], tmp_path: Path) -> None:
    with StdioHost("demo", {**mark, **CHATTER}, tmp_path) as host:
        host.open()
        host.call("reset")
        assert len(marked(mark)) >= 2
        host.end_of_file()
        assert host.process.wait(patience(GONE_WITHIN_S)) == 0
        assert wait_until_gone(mark, GONE_WITHIN_S) == []
        assert host.unread() == []


@pytest.mark.parametrize("end", ["end of file", "SIGTERM", "kill -9"])
def test_an_end_during_a_step_leaves_nothing(
    end: str, mark: dict[str, str], tmp_path: Path, venv_python: Callable[[str], Path]
) -> None:
    venv_python(venvs.OPENENV_0_10)
    with StdioHost(launched("faulty"), mark, tmp_path) as host:
        host.open()
        host.call("reset")
        host.send("tools/call", {"name": "step", "arguments": {"do": "sleep", "seconds": 60}})
        host.ask("ping", {})  # the step was taken from stdin before this
        finish(host, end)


@pytest.mark.parametrize("end", ["end of file", "SIGTERM", "kill -9"])
def test_an_end_during_a_launch_leaves_nothing(end: str, mark: dict[str, str], tmp_path: Path) -> None:
    with StdioHost(f"cmd:{sys.executable} -c 'import time; time.sleep(600)' {{port}}", mark, tmp_path) as host:
        host.open()
        host.send("tools/call", {"name": "reset", "arguments": {}})
        until(lambda: any("time.sleep(600)" in command_of(process) for process in marked(mark)))
        finish(host, end)


def finish(host: StdioHost, end: str) -> None:
    """End it that way; it must end in time, and in peace if it was asked to."""
    if end == "end of file":
        host.end_of_file()
    else:
        host.process.send_signal(signal.SIGTERM if end == "SIGTERM" else signal.SIGKILL)
    assert host.process.wait(patience(GONE_WITHIN_S)) == (-9 if end == "kill -9" else 0), host.log()
    assert "Traceback" not in host.log()
    for line in host.unread():
        assert json.loads(line)["jsonrpc"] == "2.0"


def test_kill_9_of_the_gateway_in_an_episode_leaves_nothing(mark: dict[str, str], tmp_path: Path) -> None:
    with StdioHost("demo", mark, tmp_path) as host:
        host.open()
        host.call("reset")
        assert len(marked(mark)) >= 2
        host.process.kill()


def test_kill_9_of_the_host_in_an_episode_leaves_nothing(mark: dict[str, str]) -> None:
    """The host is a process of its own, whose pipes nobody else holds."""
    play = (
        "import json, subprocess, sys\n"
        "gateway = subprocess.Popen(json.loads(sys.argv[1]), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)\n"
        "for request in json.loads(sys.argv[2]):\n"
        "    print(json.dumps(request), file=gateway.stdin, flush=True)\n"
        "    answer = json.loads(gateway.stdout.readline())\n"
        "print(json.dumps(answer), flush=True)\n"
        "gateway.wait()\n"
    )
    requests = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "reset", "arguments": {}}},
    ]
    command = [sys.executable, "-c", play, json.dumps([*GATEWAY, "stdio", "demo"]), json.dumps(requests)]
    with subprocess.Popen(command, env=servers.small_environment(mark), stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None
        assert json.loads(host.stdout.readline())["result"]["structuredContent"]["done"] is False
        assert len(marked(mark)) >= 3
        host.kill()


# --- the same over HTTP ------------------------------------------------------------------------------------------------


async def test_sigterm_lets_a_running_step_finish_and_then_leaves_nothing(newest: Arcade, mark: dict[str, str]) -> None:
    with cli.started(newest.spec("faulty"), "demo", env=mark) as gateway:
        await asyncio.to_thread(gateway.wait_until_serving)
        async with connected(agents.MCP_2_MODERN, gateway.url("faulty")) as agent:
            await agent.reset()
            step = asyncio.create_task(agent.play("step", do="sleep", seconds=1.5))
            await asyncio.to_thread(until, lambda: ready(gateway) == 200)
            await asyncio.sleep(0.3)  # the step is on its way: nothing outside tells that it has arrived
            os.kill(gateway.pid, signal.SIGTERM)
            await asyncio.to_thread(until, lambda: ready(gateway) == 503)
            assert (await step)["observation"]["did"] == "sleep"
        assert await asyncio.to_thread(gateway.wait, 10) == 0
        assert "Traceback" not in gateway.log()


async def test_a_second_signal_does_not_wait_for_the_step(newest: Arcade, mark: dict[str, str]) -> None:
    with cli.started(newest.spec("faulty"), "demo", env=mark) as gateway:
        await asyncio.to_thread(gateway.wait_until_serving)
        async with connected(agents.MCP_2_MODERN, gateway.url("faulty")) as agent:
            await agent.reset()
            step = asyncio.create_task(agent.call("step", do="sleep", seconds=8))
            await asyncio.sleep(0.3)
            for _ in range(2):
                os.kill(gateway.pid, signal.SIGTERM)
                await asyncio.sleep(0.1)
            assert await asyncio.to_thread(gateway.wait, 5) == 0
            step.cancel()
            await asyncio.gather(step, return_exceptions=True)
        assert "Traceback" not in gateway.log()


def ready(gateway: cli.GatewayProcess) -> int:
    return httpx.get(f"{gateway.base_url}/ready", trust_env=False, timeout=5).status_code


def until(condition: Callable[[], bool]) -> None:
    """Wait for something in other processes that no event tells."""
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
