"""`WS /envs/{env}/ws`, spoken frame by frame in front of a scripted environment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import websockets
from testkit import wire
from testkit.gateways import Served, environment_settings, serving
from testkit.scripted import ScriptedServer

RESET = {"type": "reset", "data": {}}
BLUE, CI = "b" * 32, "c" * 32


def step(amount: int) -> dict[str, Any]:
    return {"type": "step", "data": {"add": amount}}


def base(served: Served, name: str = "counting") -> str:
    """What an OpenEnv client is given."""
    return f"{served.base_url}/envs/{name}"


async def created(served: Served) -> str:
    async with httpx.AsyncClient(trust_env=False) as http:
        message = {"jsonrpc": "2.0", "id": 1, "method": "openenv/session/create", "params": {}}
        session: str = (await http.post(served.url(), json=message)).json()["result"]["session_id"]
        return session


@asynccontextmanager
async def attached(served: Served, session: str) -> AsyncIterator[wire.Wire]:
    url = f"{base(served).replace('http', 'ws', 1)}/ws?session_id={session}"
    async with websockets.connect(url, proxy=None, ping_interval=None, close_timeout=1) as socket:
        yield wire.Wire(socket)


async def closed(session: wire.Wire) -> int:
    """The code with which the gateway closes."""
    async with asyncio.timeout(5):
        await session.socket.wait_closed()
    assert session.socket.close_code is not None
    return session.socket.close_code


async def test_frames_are_answered_as_by_the_environments_own_server(server: ScriptedServer, served: Served) -> None:
    for url in (base(served), served.base_url):  # one environment: at the root too
        async with wire.session(url) as session, wire.session(server.url) as direct:
            for frame in (RESET, step(4), {"type": "state"}, step(7), {"type": "step", "data": {"sub": 1}}, step(1), RESET):
                await session.send(frame)
                await direct.send(frame)
                assert await session.receive() == await direct.receive()


async def test_each_connection_is_an_environment_session_that_ends_with_it(server: ScriptedServer, served: Served) -> None:
    async with wire.session(base(served)) as red, wire.session(base(served)) as blue:
        await red.ask("step", {"add": 1})
        await blue.ask("step", {"add": 2})
        assert (await red.ask("state"))["data"] == {"count": 1}
        assert server.sessions_open == 2
    await server.until(lambda: server.sessions_open == 0)


async def test_frames_sent_at_once_are_answered_in_order(served: Served) -> None:
    async with wire.session(base(served)) as session:
        for amount in range(40):
            await session.send(step(amount))
        echoes = [(await session.receive())["data"]["observation"]["echo"] for _ in range(40)]
        assert echoes == [{"add": amount} for amount in range(40)]


async def test_a_bad_frame_is_answered_and_the_session_goes_on(server: ScriptedServer, served: Served) -> None:
    async with wire.session(base(served)) as session:
        await session.ask("step", {"add": 2})
        for frame, code in (("{", "INVALID_JSON"), ('{"type":"fly"}', "UNKNOWN_TYPE"), ('{"type":"step"}', "VALIDATION_ERROR")):
            await session.socket.send(frame)
            assert (await session.receive())["data"]["code"] == code
        assert (await session.ask("state"))["data"] == {"count": 2}
        assert len(server.requests) == 2


@pytest.mark.parametrize("frame", [b"\x00\x01", "[]"])
async def test_a_frame_that_ends_sessions_on_servers_ends_this_one(
    server: ScriptedServer, served: Served, frame: str | bytes
) -> None:
    async with wire.session(base(served)) as session:
        await session.ask("reset", {})
        await session.socket.send(frame)
        assert (await session.receive())["data"]["code"] == "SESSION_ERROR"
        assert await closed(session) == 1000
    await server.until(lambda: server.sessions_open == 0)


async def test_close_gets_no_reply_and_ends_the_session(server: ScriptedServer, served: Served) -> None:
    async with wire.session(base(served)) as session:
        await session.ask("reset", {})
        await session.send({"type": "close"})
        assert await closed(session) == 1000
        await server.until(lambda: server.sessions_open == 0)


async def test_a_client_that_leaves_in_mid_step_frees_its_place_at_once(server: ScriptedServer, served: Served) -> None:
    async with wire.session(base(served)) as session:
        await session.ask("reset", {})
        server.hold_reply()
        await session.send(step(1))
        await server.until(lambda: len(server.requests) == 2)
        session.socket.transport.abort()
        lanes = served.gateway.endpoints["counting"].environment.lanes
        async with asyncio.timeout(5):
            while served.gateway.busy or len(lanes):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    server.release_reply()
    await server.until(lambda: server.sessions_open == 0)


async def test_whoever_finds_no_place_in_time_gets_capacity_reached_and_a_close() -> None:
    async with ScriptedServer(capacity=1) as server:
        settings = environment_settings(server.url, timeouts_queue_s=0.2)
        async with serving(settings) as served, wire.session(base(served)) as first:
            await first.ask("reset", {})
            async with wire.session(base(served)) as second:
                data = (await second.ask("reset", {}))["data"]
                assert (data["code"], data["max_sessions"]) == ("CAPACITY_REACHED", 1)
                assert await closed(second) == 1000
            assert (await first.ask("state"))["data"] == {"count": 0}


async def test_whoever_waits_gets_the_place_that_becomes_free() -> None:
    async with ScriptedServer(capacity=1) as server, serving(environment_settings(server.url)) as served:
        async with wire.session(base(served)) as first, wire.session(base(served)) as second:
            await first.ask("reset", {})
            waiting = asyncio.create_task(second.ask("reset", {}))
            await first.send({"type": "close"})
            assert (await waiting)["type"] == "observation"


async def test_a_broken_factory_is_told_as_servers_tell_it() -> None:
    async with ScriptedServer(factory_error="no ROM") as server, serving(environment_settings(server.url)) as served:
        async with wire.session(base(served)) as session:
            data = (await session.ask("reset", {}))["data"]
            assert (data["code"], "no ROM" in data["message"], data["factory_name"]) == ("FACTORY_ERROR", True, "Scripted")
            assert await closed(session) == 1000


async def test_a_lost_episode_is_said_and_the_connection_closed(server: ScriptedServer, served: Served) -> None:
    async with wire.session(base(served)) as session:
        await session.ask("reset", {})
        server.cut()
        data = (await session.ask("step", {"add": 1}))["data"]
        assert (data["code"], "Connect again" in data["message"]) == ("SESSION_ERROR", True)
        assert await closed(session) == 1000


async def test_a_message_beyond_the_limit_ends_the_connection(server: ScriptedServer) -> None:
    async with serving(environment_settings(server.url), max_body_bytes=1000) as served, wire.session(base(served)) as session:
        await session.ask("reset", {"pad": "x" * 100})
        await session.send({"type": "reset", "data": {"pad": "x" * 2000}})
        assert await closed(session) == 1009
    assert len(server.requests) == 1


async def test_a_draining_gateway_takes_no_new_session(server: ScriptedServer, served: Served) -> None:
    served.gateway.drain()
    async with wire.session(base(served)) as session:
        data = (await session.receive())["data"]
        assert (data["code"], "stopping" in data["message"]) == ("SESSION_ERROR", True)
        assert await closed(session) == 1000


async def test_an_mcp_frame_calls_a_tool_on_the_connections_own_session(served: Served) -> None:
    async with wire.session(base(served)) as session:
        await session.ask("reset", {})
        message = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "step", "arguments": {"add": 3}}}
        answer = await session.ask("mcp", message)
        assert (answer["type"], answer["data"]["id"]) == ("mcp", 7)
        assert answer["data"]["result"]["data"]["observation"]["count"] == 3
        assert (await session.ask("state"))["data"] == {"count": 3}
        own = await session.ask("mcp", {"jsonrpc": "2.0", "id": 8, "method": "openenv/session/create"})
        closing = {"session_id": own["data"]["result"]["session_id"]}
        refusal = await session.ask("mcp", {"jsonrpc": "2.0", "id": 9, "method": "openenv/session/close", "params": closing})
        assert refusal["data"]["error"]["code"] == -32600
        assert (await session.ask("mcp", {"jsonrpc": "2.0"}))["data"]["error"]["code"] == -32600


# --- ?session_id= ----------------------------------------------------------------------------------------------------


async def test_a_created_session_is_taken_left_and_taken_again_as_it_is(server: ScriptedServer, served: Served) -> None:
    session_id = await created(served)
    for expected in (1, 2):
        async with attached(served, session_id) as session:
            assert (await session.ask("step", {"add": 1}))["data"]["observation"]["count"] == expected
    assert server.sessions_opened == 1


async def test_a_second_connection_on_one_session_is_refused(served: Served) -> None:
    session_id = await created(served)
    async with attached(served, session_id) as first:
        async with attached(served, session_id) as second:
            data = (await second.receive())["data"]
            assert (data["code"], "already" in data["message"]) == ("SESSION_ERROR", True)
            assert await closed(second) == 1000
        assert (await first.ask("state"))["type"] == "state"


@pytest.mark.parametrize("session_id", ["unknown", "", "x" * 500])
async def test_an_unknown_session_is_refused(served: Served, session_id: str) -> None:
    async with attached(served, session_id) as session:
        if session_id == "":  # no id: as without the parameter
            assert (await session.ask("reset", {}))["type"] == "observation"
            return
        assert (await session.receive())["data"]["code"] == "SESSION_ERROR"
        assert await closed(session) == 1000


async def test_a_client_that_gave_up_a_step_reconnects_and_its_late_reply_answers_nothing(
    server: ScriptedServer, served: Served
) -> None:
    session_id = await created(served)
    async with attached(served, session_id) as session:
        await session.ask("reset", {})
        server.hold_reply()
        await session.send(step(5))
        await server.until(lambda: len(server.requests) == 2)
    server.release_reply()
    async with attached(served, session_id) as session:
        assert (await session.ask("step", {"add": 1}))["data"]["observation"] == {"count": 6, "echo": {"add": 1}}


async def test_a_session_that_is_closed_while_a_connection_is_on_it_ends_with_the_connection(
    server: ScriptedServer, served: Served
) -> None:
    session_id = await created(served)
    async with attached(served, session_id) as session, httpx.AsyncClient(trust_env=False) as http:
        await session.ask("reset", {})
        message = {"jsonrpc": "2.0", "id": 1, "method": "openenv/session/close", "params": {"session_id": session_id}}
        answer = (await http.post(served.url(), json=message)).json()
        assert answer["result"] == {"session_id": session_id, "closed": False, "closing": True}
        assert (await session.ask("state"))["type"] == "state"
    await server.until(lambda: server.sessions_open == 0)


# --- who may ---------------------------------------------------------------------------------------------------------


async def test_where_agents_may_not_control_the_simulation_the_handshake_is_refused(server: ScriptedServer) -> None:
    async with serving(environment_settings(server.url, mapping_exposure="agent")) as served:
        for url in (base(served), served.base_url):
            with pytest.raises(websockets.InvalidStatus) as caught:
                async with wire.session(url):
                    pytest.fail("the handshake must be refused")
            assert caught.value.response.status_code == 403
    assert server.handshakes == []


async def test_with_tokens_an_operators_opens_it_and_an_agents_does_not(server: ScriptedServer, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(f"agent blue {BLUE}\noperator ci {CI}\n")
    tokens.chmod(0o600)
    settings = environment_settings(server.url, mapping_exposure="agent")
    async with serving(settings, token_file=tokens) as served:
        url = base(served).replace("http", "ws", 1) + "/ws"
        for headers, status in (({}, 401), ({"Authorization": f"Bearer {BLUE}"}, 403)):
            with pytest.raises(websockets.InvalidStatus) as caught:
                async with websockets.connect(url, proxy=None, additional_headers=headers):
                    pytest.fail("the handshake must be refused")
            assert caught.value.response.status_code == status
        operator = {"Authorization": f"Bearer {CI}"}
        async with websockets.connect(url, proxy=None, additional_headers=operator) as socket:
            assert (await wire.Wire(socket).ask("reset", {}))["type"] == "observation"


async def test_a_session_is_its_principals_alone(server: ScriptedServer, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(f"operator red {BLUE}\noperator ci {CI}\n")
    tokens.chmod(0o600)
    settings = environment_settings(server.url)
    async with serving(settings, token_file=tokens) as served, httpx.AsyncClient(trust_env=False) as http:
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "openenv/session/create"}
        red, ci = ({"Authorization": f"Bearer {token}"} for token in (BLUE, CI))
        session = (await http.post(served.url(), json=message, headers=red)).json()["result"]["session_id"]
        closing = {**message, "method": "openenv/session/close", "params": {"session_id": session}}
        url = f"{base(served).replace('http', 'ws', 1)}/ws?session_id={session}"
        async with websockets.connect(url, proxy=None, additional_headers=ci) as socket:
            assert (await wire.Wire(socket).receive())["data"]["code"] == "SESSION_ERROR"
        assert (await http.post(served.url(), json=closing, headers=ci)).json()["error"]["code"] == -32602
        async with websockets.connect(url, proxy=None, additional_headers=red) as socket:
            assert (await wire.Wire(socket).ask("reset", {}))["type"] == "observation"


async def test_a_web_page_of_somebody_else_is_refused(served: Served) -> None:
    url = base(served).replace("http", "ws", 1) + "/ws"
    with pytest.raises(websockets.InvalidStatus) as caught:
        async with websockets.connect(url, proxy=None, origin=websockets.Origin("http://evil.example")):
            pytest.fail("the handshake must be refused")
    assert caught.value.response.status_code == 403
    async with websockets.connect(url, proxy=None, origin=websockets.Origin("http://localhost:3000")) as socket:
        assert (await wire.Wire(socket).ask("reset", {}))["type"] == "observation"
