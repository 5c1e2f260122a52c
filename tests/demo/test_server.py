"""openenv_gateway.demo as a child process: pages, sessions, capacity, start-up, stop. Real sockets, real subprocess."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from openenv_gateway.demo.pages import OBSERVATION

DEADLINE_S = 5.0


@dataclass
class Child:
    """A running demo. `seconds` is how long it took from exec to listening."""

    process: subprocess.Popen[str]
    url: str
    seconds: float

    @property
    def ws(self) -> str:
        return self.url.replace("http", "ws", 1) + "/ws"

    def stop(self) -> tuple[int, str, str]:
        """Exit status, stdout, rest of stderr."""
        self.process.send_signal(signal.SIGTERM)
        out, err = self.process.communicate(timeout=DEADLINE_S)
        return self.process.returncode, out, err


def launch(*arguments: str, **env: str) -> Child:
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "openenv_gateway.demo", "--port", "0", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **env},
    )  # fmt: skip
    assert process.stderr is not None
    line = process.stderr.readline()
    assert line.startswith("demo environment at http://"), line
    return Child(process, line.split()[-1], time.monotonic() - began)


@pytest.fixture
def demo(request: pytest.FixtureRequest) -> Iterator[Child]:
    child = launch(*getattr(request, "param", ()))
    yield child
    if child.process.poll() is None:
        child.stop()
    for stream in (child.process.stdout, child.process.stderr):
        if stream is not None:
            stream.close()


async def ask(connection: ClientConnection, kind: str, **data: Any) -> dict[str, Any]:
    await connection.send(json.dumps({"type": kind, "data": data} if kind != "state" else {"type": kind}))
    return await receive(connection)


async def receive(connection: ClientConnection) -> dict[str, Any]:
    frame: dict[str, Any] = json.loads(await asyncio.wait_for(connection.recv(), DEADLINE_S))
    return frame


async def play(url: str, seed: int) -> list[dict[str, Any]]:
    """One whole game over a connection of its own, always taking the first free cell."""
    async with connect(url) as connection:
        seen = [await ask(connection, "reset", seed=seed)]
        while not seen[-1]["data"]["done"]:
            seen.append(await ask(connection, "step", cell=seen[-1]["data"]["observation"]["legal_moves"][0]))
    return seen


async def test_a_whole_game_is_played_over_a_real_socket(demo: Child) -> None:
    seen = await play(demo.ws, seed=0)
    for frame in seen:
        Draft202012Validator(OBSERVATION).validate(frame["data"]["observation"])
    assert seen[-1]["data"]["reward"] in (1.0, 0.5, -1.0)


async def test_sessions_that_run_side_by_side_do_not_mix(demo: Child) -> None:
    alone = [await play(demo.ws, seed) for seed in range(8)]
    together = await asyncio.gather(*(play(demo.ws, seed) for seed in range(8)))
    assert together == alone


def test_the_pages_are_those_of_an_openenv_server(demo: Child) -> None:
    health, schema, metadata = (httpx.get(f"{demo.url}/{name}") for name in ("health", "schema", "metadata"))
    assert [page.status_code for page in (health, schema, metadata)] == [200, 200, 200]
    assert health.json() == {"status": "healthy"}
    assert health.headers["content-type"] == "application/json"
    assert set(schema.json()) == {"action", "observation", "state", "reset_observation"}
    for part in schema.json().values():
        Draft202012Validator.check_schema(part)
    assert metadata.json()["name"] == "noughts-and-crosses"


def test_an_unknown_page_is_not_found(demo: Child) -> None:
    assert httpx.get(f"{demo.url}/nothing").status_code == 404
    assert httpx.get(f"{demo.url}/ws").status_code == 404


async def test_a_socket_on_another_path_is_forbidden(demo: Child) -> None:
    with pytest.raises(InvalidStatus, match="403"):
        await connect(demo.url.replace("http", "ws", 1) + "/other")


@pytest.mark.parametrize("demo", [("--max-sessions", "1")], indirect=True)
async def test_a_session_beyond_the_limit_is_refused_with_one_frame_and_its_place_is_free_after_the_first(demo: Child) -> None:
    async with connect(demo.ws) as first:
        await ask(first, "reset", seed=1)
        async with connect(demo.ws) as second:
            refusal = await receive(second)
            with pytest.raises(ConnectionClosed) as closed:
                await receive(second)
        assert refusal["data"] == {
            "message": "Server at capacity: 1/1 sessions active. Cannot accept new connections.",
            "code": "CAPACITY_REACHED", "active_sessions": 1, "max_sessions": 1,
        }  # fmt: skip
        assert closed.value.rcvd is not None and closed.value.rcvd.code == 1000
        assert (await ask(first, "state"))["type"] == "state"
    assert (await play(demo.ws, seed=1))[-1]["data"]["done"] is True


@pytest.mark.parametrize("demo", [("--max-sessions", "1")], indirect=True)
async def test_a_client_that_drops_the_connection_frees_its_place(demo: Child) -> None:
    first = await connect(demo.ws)
    await ask(first, "reset", seed=1)
    first.transport.abort()
    await asyncio.wait_for(first.wait_closed(), DEADLINE_S)
    async with asyncio.timeout(DEADLINE_S):
        while True:  # the server learns of the abort when its loop next runs: ask until it has
            async with connect(demo.ws) as later:
                if (await ask(later, "reset", seed=1))["type"] == "observation":
                    return


async def test_bad_frames_are_answered_and_the_game_goes_on(demo: Child) -> None:
    async with connect(demo.ws) as connection:
        await ask(connection, "reset", seed=1)
        codes = []
        for raw in ("{nope", '{"type": "bogus"}', '{"type": "step", "data": {"cell": "x"}}'):
            await connection.send(raw)
            codes.append((await receive(connection))["data"]["code"])
        assert codes == ["INVALID_JSON", "UNKNOWN_TYPE", "VALIDATION_ERROR"]
        assert (await ask(connection, "step", cell=5))["type"] == "observation"


@pytest.mark.parametrize("raw", ["[]", b"\x00"])
async def test_a_frame_that_is_no_object_ends_the_session_with_1000(demo: Child, raw: str | bytes) -> None:
    async with connect(demo.ws) as connection:
        await connection.send(raw)
        assert (await receive(connection))["data"]["code"] == "SESSION_ERROR"
        with pytest.raises(ConnectionClosed) as closed:
            await receive(connection)
    assert closed.value.rcvd is not None and closed.value.rcvd.code == 1000


async def test_close_is_answered_by_closing(demo: Child) -> None:
    async with connect(demo.ws) as connection:
        await connection.send('{"type": "close"}')
        with pytest.raises(ConnectionClosed) as closed:
            await receive(connection)
    assert closed.value.rcvd is not None and closed.value.rcvd.code == 1000


async def test_sigterm_ends_it_at_once_and_cleanly_with_a_session_open(demo: Child) -> None:
    async with connect(demo.ws) as connection:
        await ask(connection, "reset", seed=1)
        status, out, err = await asyncio.to_thread(demo.stop)
    assert (status, out, err) == (0, "", "")


async def test_it_chatters_on_stdout_only_when_told() -> None:
    child = launch(DEMO_CHATTER="1")
    async with connect(child.ws) as connection:
        await ask(connection, "reset", seed=1)
        await ask(connection, "step", cell=5)
    status, out, err = child.stop()
    assert (status, out, err) == (0, "reset: seed 1\nstep: cell 5\n", "")


def test_a_port_that_is_taken_is_told_in_one_line(demo: Child) -> None:
    port = demo.url.rsplit(":", 1)[1]
    second = subprocess.run(
        [sys.executable, "-m", "openenv_gateway.demo", "--port", port],
        capture_output=True, text=True, timeout=DEADLINE_S, check=False,
    )  # fmt: skip
    assert second.returncode == 1
    assert second.stderr.startswith(f"The demo cannot listen on 127.0.0.1:{port}: ")
    assert second.stderr.count("\n") == 1


def test_it_imports_nothing_else_of_the_gateway_and_no_heavy_library() -> None:
    script = (
        "import sys, openenv_gateway.demo.server\n"
        "print(sorted(m for m in sys.modules if m.startswith('openenv') and 'demo' not in m))\n"
        "print(sorted({'PIL', 'starlette', 'uvicorn', 'jsonschema', 'pydantic', 'mcp', 'httpx'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=DEADLINE_S, check=True)
    assert done.stdout == "['openenv_gateway']\n[]\n"
