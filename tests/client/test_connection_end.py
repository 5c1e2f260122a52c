"""connection.py: how a session ends, by the server's doing or by ours."""

from __future__ import annotations

import asyncio
import json
import logging
import time

import pytest
from testkit.connections import LONG, connected
from testkit.peer import peer
from testkit.scripted import ScriptedServer, ScriptedSession, Turn, Wire, observation
from websockets.http11 import Request as Handshake
from websockets.server import ServerProtocol

from openenv_client.connection import Connection
from openenv_client.errors import EpisodeLost, ReplyTimeout

# Losing the connection


async def test_a_server_that_dies_in_mid_step_loses_the_episode() -> None:
    script = [Turn(observation()), Turn(Wire.ABORT)]
    async with ScriptedServer(script) as server, connected(server) as session:
        await session.exchange("reset", None, LONG)
        with pytest.raises(EpisodeLost, match="broke"):
            await session.exchange("step", {"add": 1}, LONG)
        assert (session.owes, session.is_open) == (None, False)
        with pytest.raises(EpisodeLost, match="broke"):
            await session.exchange("reset", None, LONG)


async def test_a_server_that_closes_instead_of_answering_loses_the_episode() -> None:
    async with ScriptedServer([Turn(observation()), Turn(Wire.CLOSE)]) as server, connected(server) as session:
        await session.exchange("reset", None, LONG)
        with pytest.raises(EpisodeLost, match="closed the connection with code 1000"):
            await session.exchange("step", {"add": 1}, LONG)


async def test_the_end_of_an_idle_connection_is_noticed_at_once() -> None:
    async with ScriptedServer() as server, connected(server) as session:
        await session.exchange("reset", None, LONG)
        server.cut()
        await asyncio.wait_for(session.wait_closed(), LONG)
        assert not session.is_open


async def test_the_reason_that_a_server_gives_for_closing_is_told() -> None:
    async with ScriptedServer() as server, connected(server) as session:
        await session.exchange("reset", None, LONG)
        await server.hang_up(1001, "maintenance")
        with pytest.raises(EpisodeLost, match=r"with code 1001 \(maintenance\)"):
            await session.exchange("step", {"add": 1}, LONG)


async def test_the_connection_breaks_while_a_reply_is_owed() -> None:
    async with ScriptedServer() as server, connected(server) as session:
        server.hold_reply()
        with pytest.raises(ReplyTimeout):
            await session.exchange("step", {"add": 1}, 0.01)
        server.cut()
        with pytest.raises(EpisodeLost):
            await session.collect(LONG)


async def test_a_reply_that_came_before_the_end_is_still_given() -> None:
    async def answer_and_leave(session: ScriptedSession) -> None:
        await session.receive()
        await session.send(observation(final=True))

    async with ScriptedServer(handler=answer_and_leave) as server, connected(server) as session:
        assert json.loads(await session.exchange("reset", None, LONG)) == observation(final=True)
        with pytest.raises(EpisodeLost):
            await session.exchange("step", {"add": 1}, LONG)


async def test_a_frame_that_nobody_asked_for_ends_the_session_and_answers_nothing() -> None:
    async with ScriptedServer() as server, connected(server) as session:
        await session.exchange("reset", None, LONG)
        await server.push(observation(stray=True))
        await asyncio.wait_for(session.wait_closed(), LONG)
        with pytest.raises(EpisodeLost, match="a frame that answers no request"):
            await session.exchange("step", {"add": 1}, LONG)
        await server.until(lambda: server.sessions_open == 0)


async def say_goodbye_and_stay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer the first request with a WebSocket close frame and then keep the TCP connection."""
    protocol = ServerProtocol()
    while data := await reader.read(65536):
        protocol.receive_data(data)
        for event in protocol.events_received():
            if isinstance(event, Handshake):
                protocol.send_response(protocol.accept(event))
            elif not protocol.close_expected():
                protocol.send_close(1000)
        writer.write(b"".join(protocol.data_to_send()))


async def test_a_server_that_says_goodbye_but_keeps_the_connection_loses_the_episode_at_the_timeout() -> None:
    async with peer(say_goodbye_and_stay) as url:
        session = await Connection.open(url)
        with pytest.raises(EpisodeLost, match="closed the connection with code 1000"):
            await session.exchange("reset", None, 0.05)
        await session.close()


async def test_an_event_loop_that_stops_leaves_nothing_that_looks_open() -> None:
    async with ScriptedServer() as server, connected(server) as session:
        await session.exchange("reset", None, LONG)
        [reader] = [task for task in asyncio.all_tasks() if task.get_name().startswith("reader of ws://127.0.0.1")]
        reader.cancel()
        await asyncio.wait({reader}, timeout=LONG)
        assert not session.is_open
        with pytest.raises(EpisodeLost, match="reader was stopped"):
            await session.exchange("step", {"add": 1}, LONG)


# Closing


async def test_closing_says_goodbye_first_and_may_be_repeated() -> None:
    async with ScriptedServer() as server:
        session = await Connection.open(server.url)
        await session.exchange("reset", None, LONG)
        await asyncio.gather(session.close(), session.close())
        await session.close()
        await asyncio.wait_for(session.wait_closed(), LONG)
        assert not session.is_open and repr(session).endswith("/ws closed>")
        with pytest.raises(EpisodeLost, match="closed by this side"):
            await session.exchange("step", {"add": 1}, LONG)
        await server.until(lambda: server.sessions_open == 0)
        assert server.close_frames == 1


async def test_closing_while_a_reply_is_owed_sends_no_further_frame() -> None:
    async with ScriptedServer() as server:
        session = await Connection.open(server.url)
        server.hold_reply()
        with pytest.raises(ReplyTimeout):
            await session.exchange("step", {"add": 1}, 0.01)
        await asyncio.wait_for(session.close(), LONG)
        assert session.owes is None
        server.release_reply()
        await server.until(lambda: server.sessions_open == 0)
        assert server.close_frames == 0


async def test_closing_tells_the_call_that_waits() -> None:
    async with ScriptedServer() as server:
        session = await Connection.open(server.url)
        server.hold_reply()
        call = asyncio.create_task(session.exchange("step", {"add": 1}, LONG))
        await server.until(lambda: len(server.requests) == 1)
        await session.close()
        with pytest.raises(EpisodeLost, match="closed by this side"):
            await call


async def go_deaf(session: ScriptedSession) -> None:
    """Answer the first request and be too busy to read anything more, as a frozen process is."""
    await session.receive()
    session.websocket.transport.pause_reading()
    await session.send(observation())
    await session.websocket.wait_closed()


async def test_a_server_that_does_not_answer_the_closing_handshake_is_cut_after_a_second(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, logger="openenv_client.connection")
    async with ScriptedServer(handler=go_deaf) as server:
        session = await Connection.open(server.url)
        await session.exchange("reset", None, LONG)
        started = time.monotonic()
        await session.close()
        assert 0.9 < time.monotonic() - started < LONG
        assert "no closing handshake within 1 s" in caplog.text
        server.cut()


async def test_a_cancelled_close_cuts_the_connection_at_once() -> None:
    async with ScriptedServer(handler=go_deaf) as server:
        session = await Connection.open(server.url)
        await session.exchange("reset", None, LONG)
        closing = asyncio.create_task(session.close())
        await asyncio.sleep(0)
        closing.cancel()
        started = time.monotonic()
        await asyncio.wait({closing}, timeout=LONG)
        assert closing.cancelled() and not session.is_open
        assert time.monotonic() - started < 0.9
        server.cut()
