"""MCP over a WebSocket, both eras, in front of a scripted environment."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import mcp_types
import pytest
import websockets
from testkit.gateways import Served, environment_settings, serving
from testkit.scripted import ScriptedServer

from openenv_gateway.cli.serve import http_config
from openenv_gateway.mcp.broadcast import TOOLS_CHANGED
from openenv_gateway.transports.conversation import MAX_IN_FLIGHT

META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


class Host:
    """A client that shows everything."""

    def __init__(self, socket: websockets.ClientConnection) -> None:
        self.socket = socket
        self._id = 0

    async def send(self, method: str, params: dict[str, Any] | None = None) -> int:
        self._id += 1
        await self.socket.send(json.dumps({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params or {}}))
        return self._id

    async def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        await self.socket.send(json.dumps({"jsonrpc": "2.0", "method": method, "params": params or {}}))

    async def read(self) -> Any:
        async with asyncio.timeout(5):
            frame = await self.socket.recv()
        assert isinstance(frame, str), "JSON-RPC is text"
        return json.loads(frame)

    async def ask(self, method: str, params: dict[str, Any] | None = None) -> Any:
        identity = await self.send(method, params)
        answer = await self.read()
        assert answer["id"] == identity, answer
        return answer.get("result") or answer["error"]

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result: dict[str, Any] = await self.ask("tools/call", {"name": tool, "arguments": arguments})
        mcp_types.CallToolResult.model_validate(result)
        return result


def address(served: Served) -> str:
    return served.url().replace("http", "ws", 1)


@asynccontextmanager
async def host_on(url: str, **options: Any) -> AsyncIterator[Host]:
    async with websockets.connect(url, proxy=None, ping_interval=None, close_timeout=1, **options) as socket:
        yield Host(socket)


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer() as server:
        yield server


@pytest.fixture
async def served(server: ScriptedServer) -> AsyncIterator[Served]:
    async with serving(environment_settings(server.url)) as served:
        yield served


async def nothing_left(served: Served) -> None:
    """Wait until the gateway holds neither a session nor a lane."""
    endpoint = served.gateway.endpoints["counting"]
    async with asyncio.timeout(5):
        while served.gateway.busy or len(endpoint.sessions) or len(endpoint.environment.lanes):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_a_host_of_the_handshake_era_plays_on_one_lane_without_handles(server: ScriptedServer, served: Served) -> None:
    async with host_on(address(served)) as host:
        assert (await host.ask("initialize", HELLO))["protocolVersion"] == "2025-06-18"
        await host.notify("notifications/initialized")
        tools = (await host.ask("tools/list"))["tools"]
        assert all("session_id" not in tool["inputSchema"]["properties"] for tool in tools)
        await host.call("reset")
        assert (await host.call("step", add=2))["structuredContent"]["observation"]["count"] == 2
        assert server.sessions_opened == 1


async def test_a_host_of_2026_07_28_plays_on_the_connections_lane(server: ScriptedServer, served: Served) -> None:
    async with host_on(address(served)) as host:
        assert (await host.ask("server/discover", {"_meta": META}))["supportedVersions"] == ["2026-07-28"]
        for expected in (1, 2):
            step = await host.ask("tools/call", {"name": "step", "arguments": {"add": 1}, "_meta": META})
            assert (step["structuredContent"]["observation"]["count"], step["resultType"]) == (expected, "complete")
        assert server.sessions_opened == 1


async def test_at_the_root_the_only_environment_answers_and_the_subprotocol_is_agreed_to(served: Served) -> None:
    async with host_on(f"{served.base_url.replace('http', 'ws', 1)}/mcp", subprotocols=["mcp"]) as host:
        assert host.socket.subprotocol == "mcp"
        assert await host.ask("tools/list")


async def test_two_connections_are_two_agents(server: ScriptedServer, served: Served) -> None:
    async with host_on(address(served)) as red, host_on(address(served)) as blue:
        await red.call("step", add=1)
        await blue.call("step", add=5)
        assert (await red.call("step", add=1))["structuredContent"]["observation"]["count"] == 2
        assert server.sessions_opened == 2
    await nothing_left(served)


async def test_the_lane_ends_with_the_connection_also_in_mid_step(server: ScriptedServer, served: Served) -> None:
    async with host_on(address(served)) as host:
        await host.call("reset")
        server.hold_reply()
        await host.send("tools/call", {"name": "step", "arguments": {"add": 1}})
        await server.until(lambda: len(server.requests) == 2)
        host.socket.transport.abort()
        await nothing_left(served)
    server.release_reply()
    await server.until(lambda: server.sessions_open == 0)


async def test_calls_run_beside_each_other_and_a_cancelled_one_has_no_answer(server: ScriptedServer, served: Served) -> None:
    async with host_on(address(served)) as host:
        await host.call("reset")
        server.hold_reply()
        slow = await host.send("tools/call", {"name": "step", "arguments": {"add": 3}})
        await server.until(lambda: len(server.requests) == 2)
        assert await host.send("ping") == (await host.read())["id"]
        await host.notify("notifications/cancelled", {"requestId": slow})
        assert await host.send("ping") == (await host.read())["id"]
        server.release_reply()
        assert (await host.call("step", add=3))["_meta"]["openenv/error"]["code"] == "PREVIOUS_ACTION_LATE"


async def test_a_second_request_with_the_id_of_a_running_one_is_refused(server: ScriptedServer, served: Served) -> None:
    async with host_on(address(served)) as host:
        await host.call("reset")
        server.hold_reply()
        slow = await host.send("tools/call", {"name": "step", "arguments": {"add": 3}})
        await server.until(lambda: len(server.requests) == 2)
        await host.socket.send(json.dumps({"jsonrpc": "2.0", "id": slow, "method": "ping"}))
        assert (await host.read())["error"]["code"] == -32600
        server.release_reply()
        assert (await host.read())["result"]["structuredContent"]["observation"]["count"] == 3


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ("{nope", -32700),
        ("[]", -32600),
        ('{"id":5}', -32600),
        (b"\xff", -32700),
        ('{"jsonrpc":"2.0","id":9,"method":"x"}', -32601),
    ],
)
async def test_a_bad_message_is_answered_and_the_next_one_is_read(served: Served, frame: str | bytes, code: int) -> None:
    async with host_on(address(served)) as host:
        await host.socket.send(frame)
        assert (await host.read())["error"]["code"] == code
        assert (await host.ask("tools/list"))["tools"]


async def test_a_call_that_lasts_shows_progress_to_whoever_gave_a_token(server: ScriptedServer, served: Served) -> None:
    async with host_on(address(served)) as host:
        await host.call("reset")
        server.hold_reply()
        params = {"name": "step", "arguments": {"add": 1}, "_meta": {"progressToken": "p"}}
        slow = await host.send("tools/call", params)
        progress = await host.read()
        assert (progress["method"], progress["params"]["progressToken"]) == ("notifications/progress", "p")
        server.release_reply()
        while "id" not in (answer := await host.read()):
            assert answer["method"] == "notifications/progress"
        assert answer["id"] == slow


async def test_changed_tools_are_told_to_whoever_said_hello(server: ScriptedServer, served: Served) -> None:
    async with host_on(address(served)) as host:
        capabilities = (await host.ask("initialize", HELLO))["capabilities"]
        assert capabilities["tools"] == {"listChanged": True}
        await host.ask("tools/list")
        served.gateway.endpoints["counting"].broadcast.publish(TOOLS_CHANGED)
        assert await host.read() == {"jsonrpc": "2.0", "method": TOOLS_CHANGED}
    await nothing_left(served)
    assert len(served.gateway.endpoints["counting"].broadcast) == 0


async def test_a_subscription_of_2026_07_28_is_told_until_it_is_cancelled(served: Served) -> None:
    broadcast = served.gateway.endpoints["counting"].broadcast
    async with host_on(address(served)) as host:
        wanted = {"notifications": {"toolsListChanged": True, "promptsListChanged": True}, "_meta": META}
        identity = await host.send("subscriptions/listen", wanted)
        meta = {"io.modelcontextprotocol/subscriptionId": identity}
        assert (await host.read())["params"] == {"notifications": {"toolsListChanged": True}, "_meta": meta}
        broadcast.publish(TOOLS_CHANGED)
        assert await host.read() == {"jsonrpc": "2.0", "method": TOOLS_CHANGED, "params": {"_meta": meta}}
        await host.notify("notifications/cancelled", {"requestId": identity})
        async with asyncio.timeout(5):
            while len(broadcast):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert (await host.ask("subscriptions/listen", {"_meta": META}))["code"] == -32602
        ended = await host.send("subscriptions/listen", {"notifications": {}, "_meta": META})
        assert (await host.read())["params"]["notifications"] == {}
        served.gateway.end_streams()
        answer = await host.read()
        assert (answer["id"], answer["result"]["resultType"]) == (ended, "complete")


async def test_openenvs_own_methods_are_answered_on_the_connections_lane(server: ScriptedServer, served: Served) -> None:
    async with host_on(address(served)) as host:
        session = (await host.ask("openenv/session/create"))["session_id"]
        assert (await host.ask("openenv/session/create"))["session_id"] == session
        named = {"name": "step", "arguments": {"add": 2}, "session_id": session}
        assert (await host.ask("tools/call", named))["data"]["observation"]["count"] == 2
        assert (await host.call("step", add=1))["structuredContent"]["observation"]["count"] == 3
        assert (await host.ask("openenv/session/close", {"session_id": session}))["code"] == -32600
        assert server.sessions_opened == 1


async def test_more_requests_than_one_connection_may_have_running_are_refused(server: ScriptedServer) -> None:
    async with serving(environment_settings(server.url, lane_queue=1000)) as served, host_on(address(served)) as host:
        await host.call("reset")
        server.hold_reply()
        for _ in range(MAX_IN_FLIGHT):
            await host.send("tools/call", {"name": "step", "arguments": {"add": 0}})
        await host.send("ping")
        refused = await host.read()
        assert (refused["id"], refused["error"]["code"], "wait" in refused["error"]["message"]) == (None, -32600, True)
        server.release_reply()
        answers = [await host.read() for _ in range(MAX_IN_FLIGHT)]
        assert all("result" in answer for answer in answers)
        assert await host.ask("tools/list")


async def test_a_message_beyond_the_limit_ends_the_connection(server: ScriptedServer) -> None:
    async with serving(environment_settings(server.url), max_body_bytes=1000) as served, host_on(address(served)) as host:
        await host.send("ping", {"pad": "x" * 2000})
        async with asyncio.timeout(5):
            await host.socket.wait_closed()
        assert host.socket.close_code == 1009


async def test_a_web_page_of_somebody_else_is_refused_before_anything_else(served: Served) -> None:
    with pytest.raises(websockets.InvalidStatus) as caught:
        async with host_on(address(served), origin=websockets.Origin("http://evil.example")):
            pytest.fail("the handshake must be refused")
    assert caught.value.response.status_code == 403
    assert len(served.gateway.endpoints["counting"].sessions) == 0


async def test_a_gateway_that_holds_all_sessions_that_it_may_refuses_the_handshake(server: ScriptedServer) -> None:
    async with serving(environment_settings(server.url), max_sessions=1) as served, host_on(address(served)):
        with pytest.raises(websockets.InvalidStatus) as caught:
            async with host_on(address(served)):
                pytest.fail("the handshake must be refused")
        assert caught.value.response.status_code == 503


async def test_the_server_sends_no_pings_and_takes_no_more_than_it_may(served: Served) -> None:
    config = http_config(served.gateway)
    assert (config.ws_ping_interval, config.ws_max_size) == (None, served.gateway.settings.max_body_bytes)
