"""A gateway with a token file, over real HTTP: who gets in, and whose sessions are whose."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from mcp.client.streamable_http import streamable_http_client
from testkit.gateways import Served, environment_settings, serving
from testkit.scripted import ScriptedServer

from mcp import Client, MCPError
from openenv_gateway.transports import token_file
from openenv_gateway.transports.withdrawal import WITHDRAWN

BLUE, RED, CI, NEW = "b" * 32, "r" * 32, "c" * 32, "n" * 32
LINES = {"blue": f"agent blue {BLUE}", "red": f"agent red {RED}", "ci": f"operator ci {CI}"}
MODERN = "2026-07-28"
META = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
LISTING = {"mcp-protocol-version": MODERN, "mcp-method": "tools/list"}
ACCEPT = {"accept": "application/json, text/event-stream"}


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    path = tmp_path / "tokens"
    path.write_text("\n".join(LINES.values()))
    path.chmod(0o600)
    return path


@pytest.fixture
async def served(server: ScriptedServer, tokens: Path) -> AsyncIterator[Served]:
    async with serving(environment_settings(server.url), token_file=tokens) as served:
        yield served


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(trust_env=False) as http:
        yield http


def replace_tokens(path: Path, text: str) -> None:
    path.write_text(text)


def bearing(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


class Caller:
    """A JSON-RPC client of the handshake era with a token."""

    def __init__(self, http: httpx.AsyncClient, url: str, token: str) -> None:
        self._http, self.url = http, url
        self.headers = {**ACCEPT, **bearing(token)}

    async def post(self, method: str, params: dict[str, Any] | None = None, **headers: str) -> httpx.Response:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
        return await self._http.post(self.url, json=message, headers={**self.headers, **headers})

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        response = await self.post("tools/call", {"name": tool, "arguments": arguments})
        assert response.status_code == 200, response.text
        result: dict[str, Any] = response.json()["result"]
        return result

    async def modern(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The result of one call of revision 2026-07-28."""
        routing = {"mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": tool}
        response = await self.post("tools/call", {"name": tool, "arguments": arguments, "_meta": META}, **routing)
        assert response.status_code == 200, response.text
        result: dict[str, Any] = response.json()["result"]
        return result

    async def initialize(self) -> str:
        response = await self.post("initialize", HELLO)
        assert response.status_code == 200, response.text
        self.headers["mcp-session-id"] = response.headers["mcp-session-id"]
        return self.headers["mcp-session-id"]


# --- who gets in -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/health", "/ready", "/schemas/config.schema.json", "/envs/counting/health"])
async def test_probes_and_contracts_stay_open(served: Served, http: httpx.AsyncClient, path: str) -> None:
    assert (await http.get(served.base_url + path)).status_code in (200, 503)


async def test_whoever_looks_for_an_authorisation_server_learns_that_there_is_none(
    served: Served, http: httpx.AsyncClient
) -> None:
    assert (await http.get(f"{served.base_url}/.well-known/oauth-protected-resource")).status_code == 404


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ({}, "wants a token"),
        ({"authorization": f"Basic {BLUE}"}, "Bearer TOKEN"),
        ({"authorization": "Bearer"}, "Bearer TOKEN"),
        (bearing("x" * 32), "unknown or was withdrawn"),
    ],
)
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
async def test_a_missing_malformed_or_unknown_token_is_answered_401_and_reaches_nothing(
    served: Served, http: httpx.AsyncClient, server: ScriptedServer, method: str, headers: dict[str, str], words: str
) -> None:
    before = len(served.gateway.endpoints["counting"].sessions)
    for url in (served.url(), f"{served.base_url}/mcp"):
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO})
        response = await http.request(
            method, url, content=body, headers={**ACCEPT, "content-type": "application/json", **headers}
        )
        assert response.status_code == 401
        assert response.headers["www-authenticate"].startswith('Bearer realm="openenv-gateway"')
        assert words in response.json()["error"]["message"]
        assert BLUE not in response.text
    assert len(served.gateway.endpoints["counting"].sessions) == before == 0


async def test_a_token_in_the_url_is_none(served: Served, http: httpx.AsyncClient) -> None:
    assert (await http.post(f"{served.url()}?access_token={BLUE}", json={})).status_code == 401


async def test_an_agent_may_not_go_where_operators_go(served: Served, http: httpx.AsyncClient) -> None:
    place = f"{served.base_url}/envs/counting/reset"
    response = await http.post(place, json={}, headers=bearing(BLUE))
    assert response.status_code == 403
    assert 'error="insufficient_scope", scope="operator"' in response.headers["www-authenticate"]
    assert "operator" in response.json()["error"]["message"]
    assert (await http.post(place, json={}, headers=bearing(CI))).status_code == 200


async def test_a_foreign_host_is_refused_before_its_token_is_looked_at(served: Served, http: httpx.AsyncClient) -> None:
    response = await http.post(served.url(), json={}, headers={"host": "evil.example", **bearing(BLUE)})
    assert response.status_code == 421


# --- whose sessions are whose ----------------------------------------------------------------------------------------


async def test_a_session_of_somebody_else_is_answered_as_an_unknown_one(served: Served, http: httpx.AsyncClient) -> None:
    blue, red = Caller(http, served.url(), BLUE), Caller(http, served.url(), RED)
    session = await blue.initialize()
    guessed = await red.post("tools/list", None, **{"mcp-session-id": "guessed"})
    stolen = await red.post("tools/list", None, **{"mcp-session-id": session})
    assert (stolen.status_code, stolen.content) == (guessed.status_code, guessed.content) == (404, guessed.content)
    ended = await http.delete(served.url(), headers={**red.headers, "mcp-session-id": session})
    assert ended.status_code == 404
    assert (await blue.post("tools/list")).status_code == 200


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_a_handle_of_somebody_else_is_answered_as_an_unknown_one(
    served: Served, http: httpx.AsyncClient, era: str
) -> None:
    blue, red = Caller(http, served.url(), BLUE), Caller(http, served.url(), RED)
    if era == "handshake":
        await blue.initialize()
        await red.initialize()
    mine, theirs = (blue.call, red.call) if era == "handshake" else (blue.modern, red.modern)
    handle = (await mine("reset"))["structuredContent"]["session_id"]
    stolen = await theirs("step", session_id=handle, add=1)
    assert stolen["isError"] is True
    assert stolen["_meta"]["openenv/error"]["code"] == "UNKNOWN_SESSION"
    unknown = await theirs("step", session_id="x" * len(handle), add=1)
    text = unknown["content"][0]["text"].replace("x" * len(handle), handle)
    assert stolen["content"][0]["text"] == text
    assert (await mine("step", session_id=handle, add=2))["structuredContent"]["observation"]["count"] == 2


async def test_equal_names_of_different_callers_are_different_sessions(served: Served, http: httpx.AsyncClient) -> None:
    blue, red = (Caller(http, f"{served.url()}?session=me", token) for token in (BLUE, RED))
    for caller in (blue, red):
        await caller.call("reset")
    assert (await blue.call("step", add=5))["structuredContent"]["observation"]["count"] == 5
    assert (await red.call("step", add=1))["structuredContent"]["observation"]["count"] == 1


# --- tokens come and go ----------------------------------------------------------------------------------------------


async def test_a_withdrawn_token_is_refused_and_a_new_one_of_the_same_name_goes_on(
    served: Served, http: httpx.AsyncClient, tokens: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_file, "LOOK_EVERY_S", 0)
    blue = Caller(http, served.url(), BLUE)
    await blue.initialize()
    await blue.call("reset")
    await blue.call("step", add=3)
    replace_tokens(tokens, f"agent blue {NEW}\n")
    response = await blue.post("tools/list")
    assert (response.status_code, 'error="invalid_token"' in response.headers["www-authenticate"]) == (401, True)
    blue.headers |= bearing(NEW)
    assert (await blue.call("step", add=1))["structuredContent"]["observation"]["count"] == 4


async def test_a_get_stream_ends_with_the_reason_when_its_token_is_withdrawn(
    served: Served, http: httpx.AsyncClient, tokens: Path
) -> None:
    blue, red = Caller(http, served.url(), BLUE), Caller(http, served.url(), RED)
    for caller in (blue, red):
        await caller.initialize()
    async with asyncio.timeout(10):
        async with (
            http.stream("GET", blue.url, headers={**blue.headers, "accept": "text/event-stream"}) as ending,
            http.stream("GET", red.url, headers={**red.headers, "accept": "text/event-stream"}) as lasting,
        ):
            assert (ending.status_code, lasting.status_code) == (200, 200)
            replace_tokens(tokens, LINES["red"])
            assert [line async for line in ending.aiter_lines() if line] == [": connected", f": {WITHDRAWN}"]
            assert (await red.post("ping")).status_code == 200
            assert len(served.gateway.endpoints["counting"].broadcast) == 1, "the other stream goes on"


async def test_a_subscription_ends_with_an_error_when_its_token_is_withdrawn(
    served: Served, http: httpx.AsyncClient, tokens: Path
) -> None:
    body = {
        "jsonrpc": "2.0",
        "id": 7,
        "method": "subscriptions/listen",
        "params": {"notifications": {"toolsListChanged": True}, "_meta": META},
    }
    routing = {"mcp-protocol-version": MODERN, "mcp-method": "subscriptions/listen"}
    headers = {**ACCEPT, **bearing(BLUE), **routing}
    async with asyncio.timeout(10), http.stream("POST", served.url(), json=body, headers=headers) as response:
        replace_tokens(tokens, LINES["red"])
        messages = [json.loads(line[6:]) async for line in response.aiter_lines() if line.startswith("data: ")]
    assert messages[0]["method"] == "notifications/subscriptions/acknowledged"
    assert messages[1:] == [{"jsonrpc": "2.0", "id": 7, "error": {"code": -32600, "message": WITHDRAWN}}]


# --- official clients ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["auto", "legacy", MODERN])
async def test_the_official_client_plays_with_a_token(served: Served, mode: Any) -> None:
    async with asyncio.timeout(20), httpx2.AsyncClient(headers=bearing(BLUE), trust_env=False) as http:
        async with Client(streamable_http_client(served.url(), http_client=http), mode=mode) as client:
            reset = await client.call_tool("reset", {})
            assert reset.structured_content is not None and reset.structured_content["observation"]["count"] == 0
            handle = reset.structured_content["session_id"]
            step = await client.call_tool("step", {"add": 2, "session_id": handle})
            assert step.structured_content is not None and step.structured_content["observation"]["count"] == 2


@pytest.mark.parametrize("mode", ["auto", "legacy", MODERN])
async def test_the_official_client_without_a_token_is_told_what_is_wanted(served: Served, mode: Any) -> None:
    async with asyncio.timeout(20):
        with pytest.raises((MCPError, BaseExceptionGroup)) as caught:
            async with Client(served.url(), mode=mode) as client:
                await client.list_tools()
    error: BaseException = caught.value
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert "Authorization: Bearer TOKEN" in str(error)


async def test_the_list_of_tools_is_the_same_bytes_for_every_caller_with_the_same_rights(
    served: Served, http: httpx.AsyncClient
) -> None:
    """Whoever asks, on whichever session, in the middle of whatever episode."""
    handshake, modern = set(), set()
    for token in (BLUE, RED, BLUE, CI):
        caller = Caller(http, served.url(), token)
        response = await caller.post("initialize", HELLO)
        caller.headers["mcp-session-id"] = response.headers["mcp-session-id"]
        handshake.add((await caller.post("tools/list")).content)
        await caller.call("reset", seed=1)
        await caller.call("step", add=len(handshake))
        handshake.add((await caller.post("tools/list")).content)
        modern.add((await caller.post("tools/list", {"_meta": META}, **LISTING)).content)
    assert (len(handshake), len(modern)) == (1, 1)
    assert {"reset", "step", "state"} == {tool["name"] for tool in json.loads(handshake.pop())["result"]["tools"]}
