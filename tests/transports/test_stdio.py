"""MCP over pipes, in this process: framing, eras, one lane, the end."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, BinaryIO

import pytest
from testkit.gateways import environment_settings, gateway_settings
from testkit.scripted import ScriptedServer

from openenv_gateway.transports.gateway import Gateway
from openenv_gateway.transports.stdio import StdioServer

META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


class Host:
    """The other end of the pipes."""

    def __init__(self, stdin: BinaryIO, stdout: BinaryIO, serving: asyncio.Task[None]) -> None:
        self._stdin, self._stdout = stdin, stdout
        self.serving = serving
        self._id = 0

    def write(self, raw: bytes) -> None:
        self._stdin.write(raw)
        self._stdin.flush()

    def send(self, method: str, params: dict[str, Any] | None = None) -> int:
        self._id += 1
        self.write(json.dumps({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params or {}}).encode() + b"\n")
        return self._id

    async def read(self) -> Any:
        async with asyncio.timeout(5):
            return json.loads(await asyncio.to_thread(self._stdout.readline))

    async def ask(self, method: str, params: dict[str, Any] | None = None) -> Any:
        identity = self.send(method, params)
        answer = await self.read()
        assert answer["id"] == identity
        return answer.get("result") or answer["error"]

    def hang_up(self) -> None:
        self._stdin.close()


@asynccontextmanager
async def host_of(server: ScriptedServer, **changes: Any) -> AsyncIterator[Host]:
    inward, outward = os.pipe(), os.pipe()
    files = os.fdopen(inward[0], "rb"), os.fdopen(inward[1], "wb"), os.fdopen(outward[0], "rb"), os.fdopen(outward[1], "wb")
    async with Gateway(gateway_settings(environment_settings(server.url, **changes))) as gateway:
        stdio = StdioServer(gateway.endpoints["counting"], files[0], files[3])
        serving = asyncio.create_task(stdio.serve())
        host = Host(files[1], files[2], serving)
        yield host
        if not files[1].closed:
            host.hang_up()
        async with asyncio.timeout(5):
            await serving
    for file in files:
        file.close()


async def test_a_host_of_the_handshake_era_plays_on_one_lane_without_handles() -> None:
    async with ScriptedServer() as server, host_of(server) as host:
        assert (await host.ask("initialize", HELLO))["protocolVersion"] == "2025-06-18"
        host.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n\n')
        tools = (await host.ask("tools/list"))["tools"]
        assert all("session_id" not in tool["inputSchema"]["properties"] for tool in tools)
        await host.ask("tools/call", {"name": "reset"})
        step = await host.ask("tools/call", {"name": "step", "arguments": {"add": 2}})
        assert step["structuredContent"]["observation"]["count"] == 2
        assert server.sessions_opened == 1


async def test_a_host_of_2026_07_28_plays_on_the_same_lane() -> None:
    async with ScriptedServer() as server, host_of(server) as host:
        assert (await host.ask("server/discover", {"_meta": META}))["supportedVersions"] == ["2026-07-28"]
        for expected in (1, 2):
            step = await host.ask("tools/call", {"name": "step", "arguments": {"add": 1}, "_meta": META})
            assert (step["structuredContent"]["observation"]["count"], step["resultType"]) == (expected, "complete")


async def test_a_probe_without_envelope_is_told_what_is_missing() -> None:
    async with ScriptedServer() as server, host_of(server) as host:
        assert (await host.ask("server/discover"))["code"] == -32602
        assert (await host.ask("initialize", HELLO))["protocolVersion"] == "2025-06-18"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{nope\n", -32700),
        (b"[]\n", -32600),
        (b'{"id":5}\n', -32600),
        (b"\xff\n", -32700),
        (b'{"jsonrpc":"2.0","id":9,"method":"x"}\n', -32601),
    ],
)
async def test_a_bad_line_is_answered_and_the_next_one_is_read(line: bytes, code: int) -> None:
    async with ScriptedServer() as server, host_of(server) as host:
        host.write(line)
        assert (await host.read())["error"]["code"] == code
        assert (await host.ask("tools/list"))["tools"]


async def test_calls_run_beside_each_other_and_a_cancelled_one_has_no_answer() -> None:
    async with ScriptedServer() as server, host_of(server) as host:
        await host.ask("tools/call", {"name": "reset"})
        server.hold_reply()
        slow = host.send("tools/call", {"name": "step", "arguments": {"add": 3}})
        await server.until(lambda: len(server.requests) == 2)
        ping = host.send("ping")
        assert (await host.read())["id"] == ping
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": slow}}
        host.write(json.dumps(cancelled).encode() + b"\n")
        ping = host.send("ping")
        assert (await host.read())["id"] == ping
        server.release_reply()
        late = await host.ask("tools/call", {"name": "step", "arguments": {"add": 3}})
        assert late["_meta"]["openenv/error"]["code"] == "PREVIOUS_ACTION_LATE"


async def test_eof_ends_calls_in_flight_and_the_environment_session() -> None:
    async with ScriptedServer() as server, host_of(server) as host:
        await host.ask("tools/call", {"name": "reset"})
        server.hold_reply()
        host.send("tools/call", {"name": "step", "arguments": {"add": 3}})
        await server.until(lambda: len(server.requests) == 2)
        host.hang_up()
        async with asyncio.timeout(5):
            await host.serving
        server.release_reply()
        await server.until(lambda: server.sessions_open == 0)


async def test_a_last_line_without_line_break_is_a_message() -> None:
    async with ScriptedServer() as server, host_of(server) as host:
        await host.ask("tools/call", {"name": "reset"})
        host.write(b'{"jsonrpc":"2.0","id":"last","method":"ping"}')
        host.hang_up()
        assert (await host.read())["id"] == "last"
