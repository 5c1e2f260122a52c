"""discovery.py: what a server says about itself, and what is said about a server that does not."""

from __future__ import annotations

import asyncio
import logging
import socket

import pytest
from testkit import catalog
from testkit.peer import peer
from testkit.scripted import Page, ScriptedServer

from openenv_client import discovery
from openenv_client.description import Description
from openenv_client.discovery import describe, health
from openenv_client.errors import NotAnEnvironment, ServerUnreachable
from openenv_client.frames import JsonObject

OBJECT: JsonObject = {"type": "object"}


def unused_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


# describe


@pytest.mark.parametrize("env", catalog.described())
async def test_every_recorded_server_is_described_as_it_was_recorded(env: str) -> None:
    metadata = catalog.load(env, "metadata")
    served = metadata if "_text" not in metadata else Page(500, metadata["_text"])
    async with ScriptedServer(pages={"/schema": catalog.load(env, "schema"), "/metadata": served}) as server:
        described = await describe(server.url)
    assert described == catalog.description(env)
    assert described.schema_page == catalog.load(env, "schema")
    assert described.metadata_page == (metadata if "_text" not in metadata else {})


async def test_a_reset_schema_is_taken_when_there_is_one() -> None:
    schema = {"action": OBJECT, "observation": OBJECT, "state": OBJECT, "reset": {"type": "object", "title": "Reset"}}
    async with ScriptedServer(pages={"/schema": schema}) as server:
        assert (await describe(server.url)).reset == {"type": "object", "title": "Reset"}


@pytest.mark.parametrize("metadata", [Page(404), Page(500, "Internal Server Error"), Page(200, "<html>"), {"name": None}])
async def test_a_server_without_usable_metadata_has_no_name(
    metadata: JsonObject | Page, caplog: pytest.LogCaptureFixture
) -> None:
    async with ScriptedServer(pages={"/schema": {"action": OBJECT, "observation": OBJECT}, "/metadata": metadata}) as server:
        assert await describe(server.url) == Description(action=OBJECT, observation=OBJECT)
    broken = isinstance(metadata, Page) and metadata.status != 404
    warned = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warned) == (1 if broken else 0)


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        (Page(404, {"detail": "Not Found"}), r"no /schema \(HTTP 404\); servers older than openenv-core 0\.2 have none"),
        (Page(200, "<html>hello"), "its /schema is no JSON .*: '<html>hello'"),
        (Page(200, "[" * 100_000), "its /schema is no JSON"),
        (Page(200, b"\xff\xfe\x00"), "its /schema is no JSON"),
        (Page(200, "[]"), "its /schema is list, not an object"),
        ({"observation": OBJECT}, "its /schema has no 'action'"),
        ({"action": OBJECT}, "its /schema has no 'observation'"),
        ({"action": "move", "observation": OBJECT}, "its /schema has str as 'action'"),
        (Page(401, "who are you?"), r"HTTP 401: who are you\?"),
        (Page(500, "x" * 1000), r"HTTP 500: x{300}\.\.\."),
    ],
)
async def test_a_schema_that_is_none_is_named_with_the_reason(page: JsonObject | Page, reason: str) -> None:
    async with ScriptedServer(pages={"/schema": page}) as server:
        with pytest.raises(NotAnEnvironment, match=reason):
            await describe(server.url)


async def test_a_page_of_endless_size_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "MAX_PAGE_BYTES", 1000)
    async with ScriptedServer(pages={"/schema": Page(200, "x" * 2000)}) as server:
        with pytest.raises(NotAnEnvironment, match="its answer is larger than 1000 bytes"):
            await describe(server.url)


async def test_headers_are_sent_and_a_redirect_is_followed() -> None:
    seen: list[bytes] = []

    async def moved(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        seen.append(request)
        if request.startswith(b"GET /health "):
            writer.write(b"HTTP/1.1 307 Moved\r\nLocation: /new\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        else:
            writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 21\r\nConnection: close\r\n\r\n{"status": "healthy"}')

    async with peer(moved) as url:
        await health(url, headers={"Authorization": "Bearer t"})
    assert [request.split(b" ")[1] for request in seen] == [b"/health", b"/new"]
    assert all(b"authorization: bearer t" in request.lower() for request in seen)


async def test_redirects_in_a_circle_are_no_environment() -> None:
    async def circle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 307 Moved\r\nLocation: /health\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    async with peer(circle) as url:
        with pytest.raises(NotAnEnvironment, match="its answer cannot be read"):
            await health(url)


# health


async def test_a_healthy_server_is_healthy() -> None:
    async with ScriptedServer() as server:
        await health(server.url)


@pytest.mark.parametrize("env", catalog.environments())
async def test_every_recorded_server_was_healthy(env: str) -> None:
    async with ScriptedServer(pages={"/health": catalog.load(env, "health")}) as server:
        await health(server.url)


async def test_a_server_that_calls_itself_unhealthy_is_not_there_yet() -> None:
    async with ScriptedServer(pages={"/health": {"status": "unhealthy"}}) as server:
        with pytest.raises(ServerUnreachable, match="it says that it is unhealthy"):
            await health(server.url)


@pytest.mark.parametrize("status", [502, 503, 504])
async def test_a_proxy_without_its_server_is_worth_another_try(status: int) -> None:
    async with ScriptedServer(pages={"/health": Page(status, "no backend"), "/schema": Page(status)}) as server:
        with pytest.raises(ServerUnreachable, match=f"HTTP {status} .*: no backend"):
            await health(server.url)
        with pytest.raises(ServerUnreachable):
            await describe(server.url)


@pytest.mark.parametrize(("page", "reason"), [(Page(404), "HTTP 404"), (Page(200, "ok"), "/health is no JSON")])
async def test_another_kind_of_server_is_no_environment(page: Page, reason: str) -> None:
    async with ScriptedServer(pages={"/health": page}) as server:
        with pytest.raises(NotAnEnvironment, match=reason):
            await health(server.url)


async def test_a_port_where_nobody_listens_is_unreachable() -> None:
    with pytest.raises(ServerUnreachable, match="Cannot reach the environment server at http://127.0.0.1"):
        await health(f"http://127.0.0.1:{unused_port()}")


async def test_a_server_that_says_nothing_is_unreachable_after_the_timeout() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with peer(silent) as url:
        with pytest.raises(ServerUnreachable, match="no (whole )?answer"):
            await health(url, 0.05)


async def test_a_server_that_answers_drop_by_drop_is_unreachable_after_the_timeout() -> None:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        while not writer.is_closing():  # a byte at each turn of the event loop: no single read ever times out
            writer.write(b" ")
            await asyncio.sleep(0)

    async with peer(drip) as url:
        with pytest.raises(ServerUnreachable, match=r"no whole answer to /health within 0\.1 s"):
            await health(url, 0.1)


async def test_a_loopback_server_is_never_asked_for_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with ScriptedServer() as server:
        await health(server.url)


async def test_an_invalid_url_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="Invalid server URL"):
        await describe("ftp://host")
