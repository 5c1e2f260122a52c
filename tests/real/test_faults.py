"""The ways in which a real server fails, as `faulty` provokes them: each as it looks from outside."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
import websockets
from testkit import servers, venvs, wire
from testkit.arcade import Arcade

pytestmark = pytest.mark.real


@pytest.fixture(autouse=True)
def framework(venv_python: Callable[[str], Path]) -> Path:
    return venv_python(venvs.OPENENV_0_10)


def get(server: servers.Server, path: str) -> int:
    return httpx.get(server.base_url + path, trust_env=False, timeout=10).status_code


async def test_a_broken_factory_leaves_health_and_schema_fine_and_refuses_every_session_without_saying_why() -> None:
    with servers.launch("faulty", env={"FAULT": "factory"}) as server:
        async with wire.session(server.base_url) as session:
            refusal = await session.receive()
        assert [get(server, path) for path in ("/health", "/schema", "/metadata")] == [200, 200, 500]
        log = server.wait_for_output("RuntimeError: the game's level file is missing")
    assert log.index('"GET /metadata') < log.index("level file is missing"), "only /metadata shows the cause in the log"
    assert refusal["data"] == {
        "code": "FACTORY_ERROR",
        "message": "Environment factory 'FaultyEnvironment' failed to create instance.",
        "factory_name": "FaultyEnvironment",
    }


async def test_a_reset_that_fails_is_an_error_frame_and_the_session_goes_on(newest: Arcade) -> None:
    async with wire.session(newest.url("reset_raises")) as session:
        reset, step = await session.ask("reset"), await session.ask("step", {"do": "nothing"})
    assert reset == {"type": "error", "data": {"message": "no level today", "code": "EXECUTION_ERROR"}}
    assert step["type"] == "observation"


async def test_a_reset_may_fail_in_metadata_alone(newest: Arcade) -> None:
    async with wire.session(newest.url("reset_error")) as session:
        reset = await session.ask("reset")
    assert reset["data"]["done"] is True
    assert reset["data"]["metadata"] == {"status": "error", "error": "LEVEL_KEY is not set"}


async def test_a_server_may_have_no_schema_and_still_play(newest: Arcade) -> None:
    async with wire.session(newest.url("no_schema")) as session:
        reset = await session.ask("reset")
    assert get(newest.server, "/no_schema/schema") == 404
    assert reset["data"]["observation"]["did"] == "reset"


async def test_a_server_may_refuse_the_handshake(newest: Arcade) -> None:
    with pytest.raises(websockets.InvalidStatus) as refusal:
        async with wire.session(newest.url("no_ws")):
            pytest.fail("the handshake was accepted")
    assert refusal.value.response.status_code == 403


async def test_a_step_that_ends_the_process_closes_the_socket_without_a_reply_or_a_close_frame() -> None:
    with servers.launch("faulty") as server:
        async with wire.session(server.base_url) as session:
            await session.ask("reset")
            with pytest.raises(websockets.ConnectionClosedError):
                await session.ask("step", {"do": "exit"})
        assert server.wait(10) == 7
        assert server.wait_for_output("the game crashed")


async def test_a_frozen_process_answers_nothing_and_is_ended_all_the_same() -> None:
    with servers.launch("faulty") as server:
        async with wire.session(server.base_url) as session:
            await session.ask("reset")
            with pytest.raises(TimeoutError):
                await session.ask("step", {"do": "freeze"}, timeout_s=0.5)
            server.kill()
    assert server.poll() == -9


async def test_a_slow_step_answers_late_and_in_order(arcade: Arcade) -> None:
    async with wire.session(arcade.url("faulty")) as session:
        with pytest.raises(TimeoutError):
            await session.ask("step", {"do": "sleep", "seconds": 1}, timeout_s=0.2)
        late, next_reply = await session.receive(), await session.ask("step", {"do": "nothing"})
    assert [reply["data"]["observation"]["did"] for reply in (late, next_reply)] == ["sleep", "nothing"]


def test_a_megabyte_of_output_does_not_keep_a_server_from_serving() -> None:
    with servers.launch("faulty", env={"FAULT": "prints"}) as server:
        assert get(server, "/health") == 200
        assert len(server.log()) > 1_000_000


def test_a_server_that_dies_at_start_is_an_error_with_its_last_words() -> None:
    with pytest.raises(servers.ServerFailed, match="cannot find the level file"):
        with servers.launch("faulty", env={"FAULT": "dies"}):
            pytest.fail("it serves")


def test_a_server_that_is_not_healthy_is_an_error_with_its_answer() -> None:
    with pytest.raises(servers.ServerFailed, match="/health answered 503"):
        with servers.launch("faulty", env={"FAULT": "no_health"}):
            pytest.fail("it is healthy")


def test_a_server_that_never_serves_is_given_up_after_the_given_time() -> None:
    with servers.start("faulty", env={"FAULT": "hangs"}) as server:
        with pytest.raises(servers.ServerFailed, match="did not serve within 1 s"):
            server.wait_until_serving(1)
        assert server.poll() is None
    assert server.poll() == -9
