from __future__ import annotations

import asyncio
from typing import Any

import pytest
from testkit.http_relay import Answer, HttpRelay, Request, http_relay, response, rpc_error, rpc_result

from openenv_client import GenericEnvClient
from openenv_client.errors import CapacityReached, ConnectFailed, FactoryFailed
from openenv_client.mcp.greeting import endpoint_urls
from openenv_client.production import open_wire
from openenv_client.wire import WireOptions

MODERN = {"supportedVersions": ["2026-07-28"], "resultType": "complete"}


async def opened(answer: Answer, path: str = "", timeout_s: float = 5.0) -> HttpRelay:
    """Open a wire to a server that answers so, and close it."""
    async with http_relay(answer=answer) as relay:
        wire = await open_wire(WireOptions(relay.url + path, connect_timeout_s=timeout_s))
        await wire.close()
        return relay


async def refused(answer: Answer, path: str = "", timeout_s: float = 5.0) -> ConnectFailed:
    with pytest.raises(ConnectFailed) as failed:
        await opened(answer, path, timeout_s)
    return failed.value


def handshake(version: str, request: Request) -> bytes:
    """A server that knows the handshake alone."""
    match request.rpc:
        case "server/discover":
            return response(400, {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "no session"}})
        case "initialize":
            return rpc_result(request, {"protocolVersion": version}, "Mcp-Session-Id: s1\r\n")
        case _:
            return response(202)


@pytest.mark.parametrize(
    ("base_url", "urls"),
    [
        ("http://h:8700/envs/chess", ["http://h:8700/envs/chess/mcp"]),
        ("http://h:8700/envs/chess/", ["http://h:8700/envs/chess/mcp"]),
        ("http://h:8700/envs/chess/mcp", ["http://h:8700/envs/chess/mcp", "http://h:8700/envs/chess/mcp/mcp"]),
        ("wss://h", ["https://h/mcp"]),
        ("h:8700", ["http://h:8700/mcp"]),
    ],
)
def test_the_endpoint_is_below_the_base_url_or_the_url_itself(base_url: str, urls: list[str]) -> None:
    assert endpoint_urls(base_url) == urls


def test_a_query_is_refused_since_every_client_has_a_session_of_its_own() -> None:
    with pytest.raises(ValueError, match=r"leave \?session=NAME out"):
        endpoint_urls("http://h/envs/chess/mcp?session=me")


async def test_the_newest_revision_is_asked_for_first_and_spoken_where_it_is_known() -> None:
    relay = await opened(lambda request: rpc_result(request, MODERN))
    (discover,) = relay.requests
    assert discover.message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
    assert discover.message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] == {}
    assert {"mcp-protocol-version": "2026-07-28", "mcp-method": "server/discover"}.items() <= discover.headers.items()


@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18"])
async def test_else_a_session_is_opened_by_the_handshake_and_deleted_at_the_end(version: str) -> None:
    relay = await opened(lambda request: handshake(version, request))
    assert relay.rpcs == ["server/discover", "initialize", "notifications/initialized", "DELETE"]
    _, initialize, *later = relay.requests
    assert initialize.message["params"]["protocolVersion"] == "2025-11-25"
    assert "mcp-protocol-version" not in initialize.headers
    for request in later:
        assert {"mcp-protocol-version": version, "mcp-session-id": "s1"}.items() <= request.headers.items()


async def test_a_server_that_speaks_other_revisions_only_is_refused_with_those_that_are_spoken() -> None:
    error = await refused(lambda request: handshake("2024-11-05", request))
    assert "speaks MCP 2024-11-05; this client speaks 2026-07-28, 2025-11-25, 2025-06-18" in str(error)


async def test_a_url_that_ends_in_mcp_may_be_an_environment_of_that_name() -> None:
    def answer(request: Request) -> bytes:
        return rpc_result(request, MODERN) if request.path == "/envs/mcp/mcp" else response(404, {"detail": "Not Found"})

    relay = await opened(answer, "/envs/mcp")
    assert [request.path for request in relay.requests] == ["/envs/mcp", "/envs/mcp/mcp"]


@pytest.mark.parametrize("status", [404, 405])
async def test_where_nothing_speaks_mcp_the_error_says_so(status: int) -> None:
    error = await refused(lambda request: response(status, b"nothing here", kind="text/plain"))
    assert f"nothing there speaks MCP (HTTP {status}: nothing here)" in str(error)


@pytest.mark.parametrize("status", [401, 403])
async def test_where_a_token_is_needed_the_error_says_how_to_give_it(status: int) -> None:
    error = await refused(lambda request: rpc_error(request, -32600, "A bearer token is needed", status))
    assert "access refused: A bearer token is needed" in str(error) and "Authorization" in str(error)


@pytest.mark.parametrize("raw", [b"", b"SSH-2.0-nothing\r\n", response(200, b"<html>")])
async def test_what_answers_no_http_or_no_json_is_a_failure_to_connect(raw: bytes) -> None:
    error = await refused(lambda request: raw)
    assert str(error).startswith("Failed to connect to http://127.0.0.1:") and "episode" not in str(error)


async def test_a_server_that_says_nothing_is_given_up_in_time() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        client = GenericEnvClient(f"http://127.0.0.1:{port}", mode="production", connect_timeout_s=0.1)
        with pytest.raises(ConnectFailed, match=r"no answer within 0\.1 s"):
            await asyncio.wait_for(client.connect(), 5)


async def test_a_server_alone_that_makes_no_session_in_time_is_given_up() -> None:
    def answer(request: Request) -> bytes:
        if request.rpc == "initialize":
            relay.hold()  # the next request is the one for a session
        return rpc_error(request, -32601, "Method not found")

    async with http_relay(answer=answer) as relay:
        with pytest.raises(ConnectFailed, match=r"no session within 0\.1 s"):
            await open_wire(WireOptions(relay.url, message_timeout_s=0.1))
        assert relay.rpcs[-1] == "openenv/session/create"


@pytest.mark.parametrize(
    ("data", "kind", "words"),
    [
        ({"active_sessions": 2, "max_sessions": 2}, CapacityReached, r"Server error: no \(code: CAPACITY_REACHED\)"),
        ({"factory_name": "make"}, FactoryFailed, r"Server error: no \(code: FACTORY_ERROR\)"),
        (None, ConnectFailed, "it made no session: no"),
    ],
)
async def test_a_refusal_of_a_server_alone_is_told_by_its_class(data: Any, kind: type[Exception], words: str) -> None:
    def answer(request: Request) -> bytes:
        known = request.rpc == "openenv/session/create"
        return rpc_error(request, -32000, "no", data=data) if known else rpc_error(request, -32601, "Method not found")

    async with http_relay(answer=answer) as relay:
        with pytest.raises(kind, match=words):
            await open_wire(WireOptions(relay.url))


async def test_a_server_without_session_methods_is_named_as_what_it_is() -> None:
    error = await refused(lambda request: rpc_error(request, -32601, "Method not found"))
    assert "neither MCP nor OpenEnv's session methods" in str(error) and "openenv-gateway serve" in str(error)
