"""OpenEnv's own clients of openenv 0.10.0, unmodified, whose base_url is the gateway's: they see what the server would show."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from testkit import cli, servers, venvs, wire
from testkit.arcade import Arcade
from testkit.cli import GatewayProcess

pytestmark = pytest.mark.real

SCRIPT = Path(__file__).parent / "clients" / "openenv_client.py"
PLAY_TIMEOUT_S = 60.0


@pytest.fixture(scope="module")
def gateway(newest: Arcade) -> Iterator[GatewayProcess]:
    specs = [newest.spec("counter"), newest.spec("toolbox"), newest.spec("solo", "queue_timeout_s=1")]
    with cli.serving(*specs) as gateway:
        yield gateway


class Clients:
    """A process with OpenEnv's clients in it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    async def see(self, play: str, base_url: str) -> Any:
        """What the user of one play sees."""
        async with asyncio.timeout(PLAY_TIMEOUT_S):
            return await asyncio.to_thread(self._ask, f"{play} {base_url}\n")

    def _ask(self, line: str) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(line)
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the clients' process ended; its traceback is on stderr"
        return json.loads(answer)


@pytest.fixture(scope="module")
def clients(venv_python: Callable[[str], Path]) -> Iterator[Clients]:
    python = str(venv_python(venvs.OPENENV_0_10))
    command, environment = [python, str(SCRIPT)], servers.small_environment({})
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            yield Clients(process)
        finally:
            process.kill()


def base(gateway: GatewayProcess, environment: str) -> str:
    return f"{gateway.base_url}/envs/{environment}"


def comparable(seen: Any) -> Any:
    """Without the server's number of the session."""
    if isinstance(seen, dict):
        return {key: comparable(value) for key, value in seen.items() if key != "session"}
    return [comparable(value) for value in seen] if isinstance(seen, list) else seen


@pytest.mark.parametrize(("play", "environment"), [("generic", "counter"), ("generic_sync", "counter"), ("tools", "toolbox")])
async def test_a_client_sees_through_the_gateway_what_it_sees_of_the_server(
    newest: Arcade, gateway: GatewayProcess, clients: Clients, play: str, environment: str
) -> None:
    direct = await clients.see(play, newest.url(environment))
    through = await clients.see(play, base(gateway, environment))
    assert comparable(through) == comparable(direct)
    assert len(direct) >= 5


async def test_the_tool_clients_calls_are_steps_and_its_failures_have_a_reason(
    newest: Arcade, gateway: GatewayProcess, clients: Clients
) -> None:
    direct = await clients.see("tool_extras", newest.url("toolbox"))
    through = await clients.see("tool_extras", base(gateway, "toolbox"))
    assert set(through["tools"]) == {*direct["tools"], "reset", "state"}
    assert set(through["tools"]["measure"]["properties"]) == set(direct["tools"]["measure"]["properties"])
    assert (direct["state"]["step_count"], through["state"]["step_count"]) == (0, 3), "what fails is a step too"
    failed, unknown = (failure["raised"] for failure in through["failures"])
    assert "EXECUTION_ERROR" in failed and "because" in failed and "Next: " in failed
    assert "There is no tool 'nothing'" in unknown


async def test_the_tool_client_plays_a_plain_action_environment(gateway: GatewayProcess, clients: Clients) -> None:
    tools, first, step, told, state, other, on = await clients.see("plain_tools_async", base(gateway, "counter"))
    assert tools == ["reset", "step", "state"]
    assert first["observation"]["board"] == "red: 3=3 of 20"
    assert (step["observation"]["board"], step["reward"], step["done"]) == ("red: 3+5=8 of 20", 0.5, False)
    assert (told["state"]["value"], state["step_count"]) == (8, 1)
    assert (other["observation"]["board"], on["observation"]["board"]) == ("blue: 0=0 of 20", "red: 3+5+1=9 of 20")
    begun, anew, last = await clients.see("plain_tools_sync", base(gateway, "counter"))
    assert [seen["observation"]["value"] for seen in (begun, anew, last)] == [3, 0, 2]


async def test_a_second_client_where_one_place_is_gets_a_servers_refusal(gateway: GatewayProcess, clients: Clients) -> None:
    refused, value = await clients.see("crowded", base(gateway, "solo"))
    assert "(code: CAPACITY_REACHED)" in refused["raised"] and value == 1


async def test_a_step_that_outlasts_its_client_answers_nothing_later_and_is_not_repeated(
    gateway: GatewayProcess, clients: Clients
) -> None:
    assert await clients.see("late", base(gateway, "toolbox")) == ["after", 2]


async def test_nothing_is_left_of_clients_that_have_gone(newest: Arcade, gateway: GatewayProcess, clients: Clients) -> None:
    """The environment sessions of every play so far have been given back: connections to the server end with their clients."""
    await clients.see("generic", base(gateway, "counter"))
    async with asyncio.timeout(10):
        while gateway.connections_to(newest.server.base_url):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def test_the_pages_about_an_environment_are_the_servers_own(newest: Arcade, gateway: GatewayProcess) -> None:
    async with httpx.AsyncClient(trust_env=False) as http:
        for page in ("health", "schema", "metadata"):
            through = await http.get(f"{base(gateway, 'counter')}/{page}")
            assert through.json() == (await http.get(f"{newest.url('counter')}/{page}")).json()


async def test_with_the_old_http_routes_a_step_acts_on_what_was_reset(gateway: GatewayProcess) -> None:
    async with httpx.AsyncClient(trust_env=False, base_url=base(gateway, "counter")) as http:
        assert (await http.post("/reset", json={"label": "old", "seed": 3})).json()["observation"]["value"] == 3
        played = (await http.post("/step", json={"action": {"amount": 4}, "timeout_s": 5})).json()
        assert (played["observation"]["board"], played["reward"]) == ("old: 3+4=7 of 20", 0.4)
        assert (await http.post("/step", json={"action": {"amount": 400}})).status_code == 422
        assert (await http.get("/state")).json()["value"] == 7


async def test_a_gateway_stops_at_once_and_in_peace_although_clients_are_connected() -> None:
    with cli.started("demo") as gateway:
        await asyncio.to_thread(gateway.wait_until_serving)
        async with wire.session(base(gateway, "demo")) as playing, wire.session(base(gateway, "demo")) as idle:
            assert (await playing.ask("reset", {}))["type"] == "observation"
            assert await asyncio.to_thread(gateway.terminate) == 0
            for session in (playing, idle):
                await session.socket.wait_closed()
                assert session.socket.close_code == 1012, "service restart: connect again"
        assert "Traceback" not in gateway.log()
