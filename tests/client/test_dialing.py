"""dialing.py: the handshake, what it sends, and what each failure is called."""

from __future__ import annotations

import asyncio
import socket

import pytest
from testkit.peer import peer
from testkit.scripted import Page, ScriptedServer

from openenv_client.connection import Connection
from openenv_client.dialing import keep_alive
from openenv_client.errors import NotAnEnvironment, ServerUnreachable, WebSocketRefused


async def test_headers_and_a_plain_user_agent_are_sent_and_no_compression_is_offered() -> None:
    async with ScriptedServer() as server:
        connection = await Connection.open(server.url + "?session_id=abc", headers={"Authorization": "Bearer t"})
        await connection.close()
    [handshake] = server.handshakes
    assert handshake.path == "/ws?session_id=abc"
    assert handshake.headers["Authorization"] == "Bearer t"
    assert handshake.headers["User-Agent"] == "openenv-client/0.1.0"
    assert "Sec-WebSocket-Extensions" not in handshake.headers


async def test_a_loopback_server_is_never_asked_for_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "ws_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with ScriptedServer() as server:
        connection = await Connection.open(server.url)
        assert connection.is_open
        await connection.close()


async def test_another_host_is_asked_for_through_the_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = asyncio.Event()

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if (await reader.readuntil(b"\r\n\r\n")).startswith(b"CONNECT environment.invalid:8000 "):
            asked.set()
        writer.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")

    async with peer(proxy) as url:
        for name in ("http_proxy", "https_proxy"):
            monkeypatch.setenv(name, url)
        with pytest.raises(ServerUnreachable, match="the proxy did not connect"):
            await Connection.open("http://environment.invalid:8000")
    assert asked.is_set()


@pytest.mark.parametrize("status", [403, 404, 500])
async def test_an_http_status_instead_of_a_handshake_is_named(status: int) -> None:
    async with ScriptedServer(pages={"/ws": Page(status)}) as server:
        with pytest.raises(WebSocketRefused, match=f"HTTP {status}") as caught:
            await Connection.open(server.url)
    assert caught.value.status == status


async def test_a_port_where_nobody_listens_is_unreachable() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(ServerUnreachable, match="Cannot reach the environment server at ws://127.0.0.1"):
            await Connection.open(f"http://127.0.0.1:{unused.getsockname()[1]}")


async def test_a_server_that_says_nothing_is_unreachable_after_the_connect_timeout() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with peer(silent) as url:
        with pytest.raises(ServerUnreachable, match=r"no WebSocket handshake within 0\.05 s"):
            await Connection.open(url, connect_timeout_s=0.05)


async def test_a_port_forwarder_without_a_server_behind_it_is_unreachable() -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")

    async with peer(hang_up) as url:
        with pytest.raises(ServerUnreachable, match="closed during the WebSocket handshake"):
            await Connection.open(url)


async def test_what_speaks_no_http_is_no_environment() -> None:
    async def ssh(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.2\r\n")
        await reader.read()

    async with peer(ssh) as url:
        with pytest.raises(NotAnEnvironment, match="what answers there is no WebSocket server"):
            await Connection.open(url)


async def test_a_redirect_to_what_is_no_websocket_is_no_environment() -> None:
    async def moved(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 302 Found\r\nLocation: ftp://host/\r\nContent-Length: 0\r\n\r\n")

    async with peer(moved) as url:
        with pytest.raises(NotAnEnvironment, match="ftp://host/ isn't a valid URI"):
            await Connection.open(url)


async def test_a_message_names_no_password() -> None:
    with pytest.raises(ServerUnreachable) as caught:
        await Connection.open("http://user:secret@127.0.0.1:1?session_id=hidden")
    assert "secret" not in str(caught.value) and "hidden" not in str(caught.value)


async def test_an_invalid_url_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="Invalid server URL 'ftp://host'"):
        await Connection.open("ftp://host")


def test_tcp_keepalive_probes_after_5_seconds_every_2_seconds_3_times() -> None:
    with socket.socket() as sock:
        keep_alive(sock)
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        options = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        assert [sock.getsockopt(socket.IPPROTO_TCP, option) for option in options] == [5, 2, 3]
