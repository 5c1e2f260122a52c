from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from testkit.http_relay import Request, http_relay, response, rpc_result
from testkit.peer import peer

from openenv_client.errors import BadReply, EpisodeLost, ServerUnreachable
from openenv_client.mcp.endpoint import Answer, Endpoint
from openenv_client.mcp.peer import header_value
from openenv_client.wire import WireOptions

PING: dict[str, Any] = {"jsonrpc": "2.0", "id": 3, "method": "ping", "params": {}}


@asynccontextmanager
async def endpoint(url: str, **options: Any) -> AsyncIterator[Endpoint]:
    made = Endpoint(url, WireOptions(url, **options))
    try:
        yield made
    finally:
        await made.aclose()


async def answered(raw: bytes, **options: Any) -> Answer:
    async with http_relay(answer=lambda request: raw) as relay, endpoint(relay.url, **options) as far:
        return await asyncio.wait_for(far.post(PING, {}), 5)


def events(*data: str) -> bytes:
    return response(200, "".join(f"data: {each}\n\n" for each in data).encode(), kind="text/event-stream; charset=utf-8")


async def test_a_request_goes_out_whole_with_the_users_headers_and_its_own() -> None:
    def answer(request: Request) -> bytes:
        return rpc_result(request, {"ok": True}, "Mcp-Session-Id: abc\r\n")

    async with http_relay(answer=answer) as relay:
        async with endpoint(relay.url + "/mcp", headers={"Authorization": "Bearer t", "Accept": "nothing"}) as far:
            found = await far.post(PING, {"Mcp-Method": "ping"})
        (sent,) = relay.requests
    assert (found.status, found.message) == (200, {"jsonrpc": "2.0", "id": 3, "result": {"ok": True}})
    assert found.headers["mcp-session-id"] == "abc"
    assert (sent.method, sent.path, sent.message) == ("POST", "/mcp", PING)
    wanted = {"authorization": "Bearer t", "mcp-method": "ping", "accept": "application/json, text/event-stream"}
    assert wanted.items() <= sent.headers.items()


async def test_the_answer_is_found_in_a_stream_of_other_messages() -> None:
    progress = '{"jsonrpc":"2.0","method":"notifications/progress","params":{}}'
    other = '{"jsonrpc":"2.0","id":9,"result":{}}'
    found = await answered(events(progress, other, '{"jsonrpc":"2.0",\ndata: "id":3,"result":{"n":1}}'))
    assert found.message == {"jsonrpc": "2.0", "id": 3, "result": {"n": 1}}


async def test_a_stream_that_ends_without_the_answer_leaves_the_outcome_unknown() -> None:
    with pytest.raises(EpisodeLost, match="ended before it was complete"):
        await answered(events('{"jsonrpc":"2.0","method":"notifications/progress"}'))


async def test_an_answer_that_breaks_off_leaves_the_outcome_unknown() -> None:
    whole = response(200, {"jsonrpc": "2.0", "id": 3, "result": {}})
    for raw in (b"", whole[:30], whole[:-5]):
        with pytest.raises(EpisodeLost, match="broke before the answer came"):
            await answered(raw)


@pytest.mark.parametrize("raw", [response(200, b"x" * 2000), events("x" * 2000), response(200, {"result": "x" * 2000})])
async def test_an_answer_beyond_the_limit_is_no_answer(raw: bytes) -> None:
    with pytest.raises(BadReply, match="larger than 1000 bytes"):
        await answered(raw, max_message_bytes=1000)


@pytest.mark.parametrize(
    "body", [b"<html>no</html>", b"", b"[]", b'{"error": "which?"}', b'{"jsonrpc": "2.0", "method": "x"}', b"[" * 9000]
)
async def test_a_body_that_is_no_response_is_shown_as_it_came(body: bytes) -> None:
    found = await answered(response(404, body))
    assert (found.status, found.message) == (404, None)
    assert found.excerpt == body[:300].decode()


async def test_where_nobody_listens_it_is_tried_again_since_nothing_was_sent() -> None:
    async with http_relay(answer=lambda request: rpc_result(request, {})) as relay:
        port = int(relay.url.rpartition(":")[2])
    async with endpoint(f"http://127.0.0.1:{port}/mcp") as far:
        with pytest.raises(ServerUnreachable, match=f"127.0.0.1:{port}/mcp"):
            await far.post(PING, {})
        attempt = asyncio.ensure_future(far.post(PING, {}))
        await asyncio.sleep(0)

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(response(200, {"jsonrpc": "2.0", "id": 3, "result": {}}))
            writer.close()

        async with await asyncio.start_server(serve, "127.0.0.1", port, reuse_address=True):
            assert (await attempt).status == 200


async def test_what_was_sent_is_never_sent_again() -> None:
    heard = []

    async def drop(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"\r\n\r\n"))

    async with peer(drop) as url, endpoint(url) as far:
        with pytest.raises(EpisodeLost):
            await far.post(PING, {})
    assert len(heard) == 1


async def test_connections_are_used_again() -> None:
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(length)
            writer.write(response(200, {"jsonrpc": "2.0", "id": 3, "result": {}}).replace(b"Connection: close\r\n", b""))

    async def until_it_leaves(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        except asyncio.IncompleteReadError:
            return

    async with peer(until_it_leaves) as url, endpoint(url) as far:
        for _ in range(20):
            assert (await far.post(PING, {})).status == 200
    assert connections == 1


async def test_loopback_is_reached_without_the_environments_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{nobody.getsockname()[1]}")
        assert (await answered(response(200, {"jsonrpc": "2.0", "id": 3, "result": {}}))).status == 200
        async with endpoint("http://far.example/mcp") as far:
            with pytest.raises(ServerUnreachable):
                await far.post(PING, {})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("step_circle", "step_circle"),
        ("two words", "two words"),
        (" x", "=?base64?IHg=?="),
        ("zug\u00b2", "=?base64?enVnwrI=?="),
        ("=?base64?x?=", "=?base64?PT9iYXNlNjQ/eD89?="),
        ("a\nb", "=?base64?YQpi?="),
    ],
)
def test_what_a_header_cannot_say_is_wrapped(text: str, value: str) -> None:
    assert header_value(text) == value
