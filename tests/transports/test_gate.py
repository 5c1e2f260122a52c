"""openenv_gateway.transports.gate in front of an application of its own, with real HTTP and WebSocket connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp
from starlette.websockets import WebSocket
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from openenv_gateway.cli.serve import HttpServer, listen
from openenv_gateway.transports import token_file
from openenv_gateway.transports.access import Access, principal_in
from openenv_gateway.transports.gate import Gate
from openenv_gateway.transports.guards import HostGuard
from openenv_gateway.transports.token_file import TokenFile
from openenv_gateway.transports.withdrawal import WITHDRAWN, Withdrawals

BLUE, RED = "b" * 32, "r" * 32


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    path = tmp_path / "tokens"
    path.write_text(f"agent blue {BLUE}\nagent red {RED}")
    path.chmod(0o600)
    return path


class Echo:
    """Says who calls. `ended` are the close codes of its WebSockets."""

    def __init__(self) -> None:
        self.ended: asyncio.Queue[int] = asyncio.Queue()
        self.app = Starlette(routes=[Route("/who", self.who), WebSocketRoute("/socket", self.socket)])

    async def who(self, request: Request) -> PlainTextResponse:
        return PlainTextResponse(principal_in(request.scope).name)

    async def socket(self, socket: WebSocket) -> None:
        await socket.accept()
        while (message := await socket.receive())["type"] != "websocket.disconnect":
            await socket.send_text(f"{principal_in(socket.scope).name}: {message['text']}")
        self.ended.put_nowait(message["code"])


@asynccontextmanager
async def gate(echo: Echo, access: Access, places: Mapping[str, ASGIApp] | None = None) -> AsyncIterator[str]:
    """Host and port."""
    with listen("127.0.0.1", 0) as listener:
        app = Gate(echo.app, HostGuard(), access, Withdrawals(access), places or {})
        server = HttpServer(uvicorn.Config(app, log_config=None, lifespan="off", timeout_graceful_shutdown=2))
        task = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            await task


def withdraw_blue(tokens: Path) -> None:
    tokens.write_text(f"agent red {RED}\n")


def bearing(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def test_the_application_learns_who_calls(tokens: Path) -> None:
    async with gate(Echo(), Access(TokenFile(tokens))) as address, httpx.AsyncClient(trust_env=False) as http:
        assert (await http.get(f"http://{address}/who", headers=bearing(BLUE))).text == "blue"
        assert (await http.get(f"http://{address}/who", headers=bearing(RED))).text == "red"
        refused = await http.get(f"http://{address}/who")
    assert (refused.status_code, refused.json()["id"], refused.json()["error"]["code"]) == (401, None, -32600)


async def test_without_tokens_everybody_is_anonymous() -> None:
    async with gate(Echo(), Access()) as address, httpx.AsyncClient(trust_env=False) as http:
        assert (await http.get(f"http://{address}/who", headers=bearing(BLUE))).text == "anonymous"
        async with connect(f"ws://{address}/socket", proxy=None) as socket:
            await socket.send("hello")
            assert await socket.recv() == "anonymous: hello"


async def test_a_place_is_served_directly_at_its_very_path_and_behind_the_same_checks(tokens: Path) -> None:
    places = {"/socket": PlainTextResponse("direct")}
    async with gate(Echo(), Access(TokenFile(tokens)), places) as address, httpx.AsyncClient(trust_env=False) as http:
        assert (await http.get(f"http://{address}/socket?a=b", headers=bearing(BLUE))).text == "direct"
        assert (await http.get(f"http://{address}/socket")).status_code == 401
        assert (await http.get(f"http://{address}/socket/", headers=bearing(BLUE))).status_code == 404
        async with connect(f"ws://{address}/socket", additional_headers=bearing(RED), proxy=None) as socket:
            await socket.send("hello")
            assert await socket.recv() == "red: hello"


async def test_a_websocket_is_refused_before_it_opens(tokens: Path) -> None:
    async with gate(Echo(), Access(TokenFile(tokens))) as address:
        for headers, status in (({}, 401), (bearing("x" * 32), 401), ({**bearing(BLUE), "Origin": "http://evil.example"}, 403)):
            with pytest.raises(InvalidStatus) as caught:
                async with connect(f"ws://{address}/socket", additional_headers=headers, proxy=None):
                    pass
            assert caught.value.response.status_code == status


async def test_a_websocket_ends_when_its_token_was_withdrawn(tokens: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_file, "LOOK_EVERY_S", 0)
    echo = Echo()
    async with asyncio.timeout(10), gate(echo, Access(TokenFile(tokens))) as address:
        async with connect(f"ws://{address}/socket", additional_headers=bearing(BLUE), proxy=None) as socket:
            await socket.send("1")
            assert await socket.recv() == "blue: 1"
            withdraw_blue(tokens)
            await socket.send("2")
            with pytest.raises(ConnectionClosed) as caught:
                await socket.recv()
            assert caught.value.rcvd is not None and caught.value.rcvd.code == 1008
            assert "withdrawn" in caught.value.rcvd.reason
        assert await echo.ended.get() == 1008


async def test_a_websocket_that_is_silent_ends_soon_after_its_token_was_withdrawn_and_others_go_on(tokens: Path) -> None:
    echo = Echo()
    async with asyncio.timeout(10), gate(echo, Access(TokenFile(tokens))) as address:
        async with (
            connect(f"ws://{address}/socket", additional_headers=bearing(BLUE), proxy=None) as blue,
            connect(f"ws://{address}/socket", additional_headers=bearing(RED), proxy=None) as red,
        ):
            withdraw_blue(tokens)
            with pytest.raises(ConnectionClosed) as caught:
                await blue.recv()
            assert caught.value.rcvd is not None
            assert (caught.value.rcvd.code, caught.value.rcvd.reason) == (1008, WITHDRAWN)
            assert await echo.ended.get() == 1008
            await red.send("still here")
            assert await red.recv() == "red: still here"
