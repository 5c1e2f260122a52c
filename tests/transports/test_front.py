"""transports/front.py: what becomes of a connection whose requests go the shorter way. See also test_front_equivalence.py."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from testkit.gateways import Served, environment_settings, serving
from testkit.http_agent import HELLO, META, MODERN, until
from testkit.raw_http import Answer, post, raw_client
from testkit.scripted import ScriptedServer, observation
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT

from openenv_gateway.mcp.kernel import Kernel
from openenv_gateway.transports import streamable_http, token_file
from openenv_gateway.transports.exchange import ATTEND_AFTER_S, Exchange
from openenv_gateway.transports.front import HELD, FrontProtocol

LANE = "/mcp?session=one"


def message(method: str, params: dict[str, Any] | None = None, identity: int = 1) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": identity, "method": method, "params": params or {}}).encode()


def call(tool: str, **arguments: Any) -> bytes:
    return message("tools/call", {"name": tool, "arguments": arguments})


def modern(method: str, **params: Any) -> bytes:
    """A request of 2026-07-28 with its headers."""
    named = [f"Mcp-Name: {params['name']}"] if method == "tools/call" else []
    lines = (f"MCP-Protocol-Version: {MODERN}", f"Mcp-Method: {method}", *named)
    return post(message(method, {**params, "_meta": META}), *lines)


STEP, PING = post(call("step", add=1), target=LANE), post(message("ping"))


def result_of(answer: Answer) -> Any:
    assert answer.status == 200, answer
    return json.loads(answer.body)["result"]


def protocols(served: Served) -> list[FrontProtocol]:
    """The server's connections."""
    return [one for one in served.server.server_state.connections if isinstance(one, FrontProtocol)]


@pytest.fixture
def shorter(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each segment that began a request, whether it went the shorter way."""
    begun: list[bool] = []
    begin = FrontProtocol._begin

    def noted(self: FrontProtocol, data: bytes) -> bool:
        begun.append(begin(self, data))
        return begun[-1]

    monkeypatch.setattr(FrontProtocol, "_begin", noted)
    return begun


# --- what changes between two requests -------------------------------------------------------------------------------


async def test_a_token_that_is_withdrawn_between_two_requests_of_a_connection_counts_no_more(
    server: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shorter: list[bool]
) -> None:
    monkeypatch.setattr(token_file, "LOOK_EVERY_S", 0.0)
    path = tmp_path / "tokens"
    path.write_text(f"agent blue {'b' * 32}\nagent red {'r' * 32}")
    path.chmod(0o600)
    request = post(message("ping"), f"Authorization: Bearer {'b' * 32}")
    async with serving(environment_settings(server.url), token_file=path) as served, raw_client(served.port) as client:
        assert [(await client.ask(request)).status for _ in range(2)] == [200, 200]
        path.write_text(f"agent red {'r' * 32}")
        refused = await client.ask(request)
        assert refused.status == 401 and b"unknown or was withdrawn" in refused.body
        path.write_text(f"agent blue {'b' * 32}\nagent red {'r' * 32}  # again")
        path.write_text(f"agent blue {'b' * 32}\nagent red {'r' * 32}\n")
        assert (await client.ask(request)).status == 200
    assert shorter == [True, True, False, True]


async def test_a_session_that_is_deleted_between_two_requests_of_a_connection_is_unknown(
    served: Served, shorter: list[bool]
) -> None:
    async with raw_client(served.port) as client, raw_client(served.port) as other:
        identity = (await client.ask(post(message("initialize", HELLO)))).header(b"mcp-session-id")
        assert identity is not None
        line = f"Mcp-Session-Id: {identity.decode()}"
        assert (await client.ask(post(message("ping"), line))).status == 200
        deletion = f"DELETE /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n{line}\r\n\r\n".encode()
        assert (await other.ask(deletion)).status == 200
        gone = await client.ask(post(message("ping"), line))
        assert gone.status == 404 and b"send initialize" in gone.body
        assert not client.is_ended
    assert shorter == [True, True, False, True]


# --- clients that leave ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("after_s", [0.0, ATTEND_AFTER_S + 0.1], ids=["at once", "later"])
@pytest.mark.parametrize("early", [b"", b"\r\n", b"POST /mcp HT"], ids=["nothing", "a line", "half a request"])
async def test_a_client_that_leaves_its_call_loses_no_outcome_in_the_handshake_era(
    served: Served, server: ScriptedServer, after_s: float, early: bytes
) -> None:
    async with raw_client(served.port) as client:
        await client.ask(post(call("reset"), target=LANE))
        server.hold_reply()
        await client.send([STEP, early])
        await server.until(lambda: len(server.requests) == 2)
        await asyncio.sleep(after_s)  # the call has to last for a while, of which nothing tells
    await until(lambda: not protocols(served))
    server.release_reply()
    await until(lambda: served.gateway.busy == 0)
    async with raw_client(served.port) as client:
        told = result_of(await client.ask(STEP))
    assert told["_meta"]["openenv/error"]["code"] == "PREVIOUS_ACTION_LATE"
    assert len(server.requests) == 2


@pytest.mark.parametrize("after_s", [0.0, ATTEND_AFTER_S + 0.1], ids=["at once", "later"])
async def test_a_client_that_leaves_has_cancelled_its_call_in_2026_07_28(
    served: Served, server: ScriptedServer, after_s: float
) -> None:
    async with raw_client(served.port) as client:
        handle = result_of(await client.ask(modern("tools/call", name="reset")))["structuredContent"]["session_id"]
        server.hold_reply()
        await client.send([modern("tools/call", name="step", arguments={"add": 1, "session_id": handle})])
        await server.until(lambda: len(server.requests) == 2)
        await asyncio.sleep(after_s)
    await until(lambda: served.gateway.busy == 0)  # although the environment has not replied
    assert not served.server.server_state.tasks
    server.release_reply()


async def test_what_comes_before_the_answer_is_read_up_to_a_limit_and_answered_in_order(
    served: Served, server: ScriptedServer
) -> None:
    async with raw_client(served.port) as client:
        await client.ask(post(call("reset"), target=LANE))
        server.hold_reply()
        await client.send([STEP])
        await server.until(lambda: len(server.requests) == 2)
        many = 3 * HIGH_WATER_LIMIT // len(PING)
        await client.send([PING] * many)
        (protocol,) = protocols(served)
        await until(lambda: protocol.flow.read_paused)
        assert len(protocol._early) <= HIGH_WATER_LIMIT + 2**18  # what one reading of the event loop brings at most
        server.release_reply()
        await client.until(2 + many)
        assert [answer.status for answer in client.answers] == [200] * (2 + many)
        assert result_of(client.answers[1])["structuredContent"]["observation"]["count"] == 1


async def test_a_body_that_comes_behind_its_head_goes_the_shorter_way_in_any_pieces(
    served: Served, server: ScriptedServer, shorter: list[bool]
) -> None:
    """Clients that write head and body apart: httpx, and with it most that are written in Python."""
    async with raw_client(served.port) as client:
        await client.ask(post(call("reset"), target=LANE))
        head, body = STEP[: STEP.index(b"\r\n\r\n") + 4], STEP[STEP.index(b"\r\n\r\n") + 4 :]
        for pieces in ([head, body], [head, body[:5], body[5:9], body[9:]], [head + body[:1], body[1:]]):
            before = len(client.answers)
            for piece in pieces:
                await client.send([piece])
                (protocol,) = protocols(served)
                if piece is not pieces[-1]:
                    await until(lambda: protocol._held.endswith(piece))  # noqa: B023  (it is awaited here)
            await client.until(before + 1)
            assert result_of(client.answers[-1])["structuredContent"]["reward"] is not None
        assert all(shorter) and len(server.requests) == 4


async def test_a_held_request_that_turns_out_to_be_more_goes_the_ordinary_way_whole(
    served: Served, server: ScriptedServer, shorter: list[bool]
) -> None:
    async with raw_client(served.port) as client:
        await client.ask(post(call("reset"), target=LANE))
        await client.send([STEP[:-3]])
        (protocol,) = protocols(served)
        await until(lambda: bool(protocol._held))
        await client.send([STEP[-3:] + PING])
        await client.until(3)
        assert result_of(client.answers[1])["structuredContent"]["observation"]["count"] == 1
        assert result_of(client.answers[2]) == {}
        assert shorter[:3] == [True, True, False]


async def test_neither_a_large_body_nor_a_stranger_is_waited_for(served: Served, shorter: list[bool]) -> None:
    large = post(message("ping", {"x": "y" * HELD}))
    async with raw_client(served.port) as client:
        await client.send([large[:1000]])
        await until(lambda: bool(shorter))
        assert shorter == [False]
        await client.send([large[1000:]])
        await client.until(1)
        assert client.answers[0].status == 200


async def test_a_connection_is_not_idle_while_a_request_is_held_and_shutdown_does_not_wait_for_it(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served.server.config, "timeout_keep_alive", 0.1)
    async with raw_client(served.port) as client:
        await client.ask(PING)
        await client.send([PING[:-3]])
        await asyncio.sleep(0.3)  # three times the time
        await client.send([PING[-3:]])
        await client.until(2)
        await client.send([PING[:-3]])
        (protocol,) = protocols(served)
        await until(lambda: bool(protocol._held))
        protocol.shutdown()
        await client.until_end()


# --- ends of connections ---------------------------------------------------------------------------------------------


async def test_an_idle_connection_is_closed_after_the_keep_alive_time_and_a_busy_one_is_not(
    served: Served, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served.server.config, "timeout_keep_alive", 0.2)
    loop = asyncio.get_running_loop()
    async with raw_client(served.port) as idle, raw_client(served.port) as busy:
        await idle.ask(PING)
        since = loop.time()
        await busy.ask(post(call("reset"), target=LANE))
        server.hold_reply()
        await busy.send([STEP])
        await idle.until_end()
        assert 0.15 <= loop.time() - since < 2.0
        await asyncio.sleep(0.5)  # more than twice the time
        server.release_reply()
        await busy.until(2)
        assert [answer.status for answer in busy.answers] == [200, 200]
        await busy.until_end()


async def test_each_answer_begins_the_keep_alive_time_anew(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served.server.config, "timeout_keep_alive", 0.3)
    health = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    async with raw_client(served.port) as client:
        for request in (PING, PING, health, PING, health, health, PING):
            assert (await client.ask(request)).status == 200
            await asyncio.sleep(0.15)
        await client.until_end()


async def test_shutdown_closes_idle_connections_and_lets_a_call_finish(served: Served, server: ScriptedServer) -> None:
    async with raw_client(served.port) as idle, raw_client(served.port) as busy:
        await idle.ask(PING)
        await busy.ask(post(call("reset"), target=LANE))
        server.hold_reply()
        await busy.send([STEP])
        await server.until(lambda: len(server.requests) == 2)
        served.server.should_exit = True
        await idle.until_end()
        assert not busy.is_ended
        server.release_reply()
        await busy.until_end()
        assert result_of(busy.answers[1])["structuredContent"]["observation"]["count"] == 1


async def test_a_call_that_outlasts_the_shutdown_is_answered_500_as_by_uvicorn(server: ScriptedServer) -> None:
    async with serving(environment_settings(server.url)) as served:
        served.server.config.timeout_graceful_shutdown = 0
        async with raw_client(served.port) as client:
            await client.ask(post(call("reset"), target=LANE))
            server.hold_reply()
            await client.send([STEP])
            await server.until(lambda: len(server.requests) == 2)
            served.server.should_exit = True
            await client.until_end()
            assert [(answer.status, answer.is_complete) for answer in client.answers] == [(200, True), (500, True)]
            assert client.answers[1].header(b"connection") == b"close"


async def test_an_unexpected_exception_is_answered_once_and_logged_once_and_ends_the_connection(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: Any) -> Any:
        raise ZeroDivisionError("inside")

    monkeypatch.setattr(Kernel, "answer", broken)
    with caplog.at_level(logging.ERROR):
        async with raw_client(served.port) as client:
            await client.send([PING])
            await client.until_end()
    (answer,) = client.answers
    assert (answer.status, answer.body, answer.header(b"connection")) == (500, b"Internal Server Error", b"close")
    assert [record.getMessage() for record in caplog.records] == ["a request failed"]
    async with raw_client(served.port) as client:
        assert (await client.ask(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")).status == 200


async def test_an_exception_in_a_stream_cuts_it_before_its_end(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(exchange: Exchange, *_: Any) -> None:
        await exchange.stream(b": begun\n\n")
        raise ZeroDivisionError("inside")

    monkeypatch.setattr(streamable_http, "serve_listen", broken)
    with caplog.at_level(logging.ERROR):
        async with raw_client(served.port) as client:
            await client.send([modern("subscriptions/listen", notifications={})])
            await client.until_end()
    (answer,) = client.answers
    assert (answer.status, answer.body, answer.is_complete) == (200, b": begun\n\n", False)
    assert [record.getMessage() for record in caplog.records] == ["a request failed"]


# --- large answers, event streams ------------------------------------------------------------------------------------


async def test_a_slow_reader_gets_a_large_answer_whole_and_does_not_pile_up_more() -> None:
    words = [f"{number:07d} " * 10_000 for number in range(100)]  # 8 MB, which go out twice: as text and as a value

    async with ScriptedServer(respond=lambda session, frame: observation(words=words)) as server:
        settings = environment_settings(server.url, mapping_max_result_bytes=20_000_000)
        async with serving(settings) as served, raw_client(served.port) as client:
            client.writer.transport.pause_reading()  # type: ignore[attr-defined]
            request = post(call("reset"), target=LANE)
            await client.send([request])
            (protocol,) = protocols(served)
            await until(lambda: protocol.flow.write_paused)
            piled = protocol.transport.get_write_buffer_size()
            for _ in range(4):
                await client.send([request])
            await server.until(lambda: len(server.requests) == 2)  # the second waits with its answer, the others with all
            await asyncio.sleep(0.2)
            assert len(server.requests) == 2 and protocol.transport.get_write_buffer_size() <= piled
            client.writer.transport.resume_reading()  # type: ignore[attr-defined]
            await client.until(5)
            assert client.complete == 5
            for answer in client.answers:
                assert result_of(answer)["structuredContent"]["observation"]["words"] == words


async def test_a_call_that_lasts_is_an_event_stream_in_well_formed_chunks(
    served: Served, server: ScriptedServer, shorter: list[bool]
) -> None:
    body = message("tools/call", {"name": "step", "arguments": {"add": 1}, "_meta": {"progressToken": "t"}})
    async with raw_client(served.port) as client:
        await client.ask(post(call("reset"), target=LANE))
        server.hold_reply()
        await client.send([post(body, target=LANE)])
        await until(lambda: any(protocol._exchange and protocol._exchange.is_started for protocol in protocols(served)))
        server.release_reply()
        await client.until(2)
        answer = client.answers[1]
        assert (answer.status, answer.is_complete) == (200, True)
        assert answer.header(b"content-type") == b"text/event-stream"
        assert answer.header(b"transfer-encoding") == b"chunked" and answer.header(b"content-length") is None
        events = [event for event in answer.body.decode().split("\n\n") if event]
        messages = [json.loads(event.partition("data: ")[2]) for event in events]
        assert [one.get("method") for one in messages[:-1]] == ["notifications/progress"] * (len(messages) - 1) != []
        assert messages[-1]["result"]["structuredContent"]["observation"]["count"] == 1
        assert (await client.ask(PING)).status == 200  # the connection goes on
    assert shorter == [True, True, True]


async def test_a_subscription_streams_on_the_shorter_way_and_ends_with_its_client(served: Served, shorter: list[bool]) -> None:
    endpoint = served.gateway.endpoints["counting"]
    async with raw_client(served.port) as client:
        await client.send([modern("subscriptions/listen", notifications={"toolsListChanged": True})])
        await client.until_text(b"acknowledged")
        endpoint.environment.on_tools_changed()
        await client.until_text(b"tools/list_changed")
        assert not client.answers[0].is_complete
    assert shorter == [True]
    await until(lambda: not served.server.server_state.tasks)


# --- memory ----------------------------------------------------------------------------------------------------------


async def test_an_idle_connection_keeps_neither_body_nor_answer_of_its_latest_request(served: Served) -> None:
    async with raw_client(served.port) as client:
        assert (await client.ask(post(message("ping", {"x": "y" * 1_000_000})))).status == 200
        (protocol,) = protocols(served)
        assert protocol._known is not None
        assert protocol._exchange is None and protocol._early == b""
        kept = [protocol._known._before, protocol._known._after]
        assert sum(len(part) for part in kept) < 500
