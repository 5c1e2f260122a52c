"""http.py: a 0.1.x server behind the verbs of a session."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from testkit import catalog
from testkit.old_server import OldServer
from testkit.peer import peer
from testkit.scripted import observation

from openenv_client.connection import Connection
from openenv_client.errors import (
    BadReply,
    EpisodeLost,
    NotAnEnvironment,
    ReplyOwed,
    ReplyTimeout,
    ServerUnreachable,
    WebSocketRefused,
)
from openenv_client.frames import ErrorFrame, Kind, Observation, State, parse_reply
from openenv_client.http import HttpSession
from openenv_client.session import EnvironmentSession

LONG = 5.0


@asynccontextmanager
async def playing(server: OldServer, **options: Any) -> AsyncIterator[HttpSession]:
    session = await HttpSession.open(server.url, **options)
    try:
        yield session
    finally:
        await session.close()


async def test_reset_step_and_state_give_the_frames_that_a_websocket_would() -> None:
    async with OldServer() as server, playing(server) as session:
        conforming: EnvironmentSession = session
        assert parse_reply(await conforming.exchange("reset", {"seed": 1}, LONG)) == Observation(
            {"echoed": "ready", "n": 0}, 0.0, False, {}
        )
        assert json.loads(await session.exchange("step", {"message": "ab"}, LONG)) == observation(2.0, echoed="ab", n=1)
        assert parse_reply(await session.exchange("state", None, LONG)) == State({"episode_id": None, "step_count": 1})
        assert server.requests == [("/reset", {"seed": 1}), ("/step", {"action": {"message": "ab"}})]
        assert (session.owes, session.is_open) == (None, True)


async def test_the_recorded_answers_of_a_real_old_server_are_understood() -> None:
    recorded = {
        (entry["path"], json.dumps(entry["body"])): entry
        for entry in catalog.load("old_server_0.1.1", "http_transcript")
        if entry.get("status") == 200 and entry["path"] in ("/reset", "/step", "/state")
    }
    assert recorded
    async with OldServer() as server, playing(server) as session:
        for entry in recorded.values():
            kind: Kind = entry["path"].removeprefix("/")
            server.answers[entry["path"]] = JSONResponse(entry["resp"])
            reply = json.loads(await session.exchange(kind, {}, LONG))
            assert reply == {"type": "state" if kind == "state" else "observation", "data": entry["resp"]}
            parse_reply(json.dumps(reply))


async def test_the_bare_500_of_a_bad_action_is_an_error_frame_with_status_and_body() -> None:
    async with OldServer() as server, playing(server) as session:
        reply = parse_reply(await session.exchange("step", {"zzz": 1}, LONG))
        assert reply == ErrorFrame(
            "the server answered step with HTTP 500: Internal Server Error",
            "EXECUTION_ERROR",
            {
                "message": "the server answered step with HTTP 500: Internal Server Error",
                "code": "EXECUTION_ERROR",
                "status": 500,
            },
        )
        assert isinstance(parse_reply(await session.exchange("step", {"message": "a"}, LONG)), Observation)


@pytest.mark.parametrize(
    ("answer", "errors"),
    [
        (JSONResponse({"detail": [{"loc": ["body", "action"], "msg": "Field required"}]}, 422), 1),
        (JSONResponse({"detail": "no"}, 422), 0),
        (PlainTextResponse("no", 422), 0),
    ],
)
async def test_a_422_carries_the_field_errors_that_the_server_gives(answer: Response, errors: int) -> None:
    async with OldServer() as server, playing(server) as session:
        server.answers["/step"] = answer
        reply = parse_reply(await session.exchange("step", {"message": "a"}, LONG))
        assert isinstance(reply, ErrorFrame) and reply.code == "VALIDATION_ERROR"
        assert len(reply.as_exception().errors) == errors


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (PlainTextResponse("Not Found", 404), r"the HTTP status of /step is 404 \(Not Found\)"),
        (RedirectResponse("/elsewhere"), "the HTTP status of /step is 307"),
        (PlainTextResponse("hello"), r"the body of /step is no JSON .*: 'hello'"),
        (JSONResponse([1]), "the body of /step is list, not an object"),
        (PlainTextResponse("x" * 5000), "its answer is larger than 1000 bytes"),
    ],
)
async def test_an_answer_that_is_none_is_a_bad_reply_and_ends_the_session(answer: Response, fault: str) -> None:
    async with OldServer() as server, playing(server, max_message_bytes=1000) as session:
        server.answers["/step"] = answer
        with pytest.raises(BadReply, match=fault):
            await session.exchange("step", {"message": "a"}, LONG)
        assert (session.owes, session.is_open) == (None, False)
        await asyncio.wait_for(session.wait_closed(), LONG)
        assert len(server.requests) == 1


async def test_a_late_answer_never_answers_the_next_call_and_nothing_runs_beside_it() -> None:
    async with OldServer() as server, playing(server) as session:
        server.hold()
        with pytest.raises(ReplyTimeout):
            await session.exchange("step", {"message": "slow"}, 0.05)
        assert session.owes == "step"
        with pytest.raises(ReplyOwed):
            await session.exchange("step", {"message": "next"}, LONG)
        server.release.set()
        assert json.loads(await session.collect(LONG)) == observation(4.0, echoed="slow", n=1)
        assert json.loads(await session.exchange("step", {"message": "b"}, LONG)) == observation(1.0, echoed="b", n=2)
        assert [body["action"]["message"] for _, body in server.requests] == ["slow", "b"]


async def test_a_cancelled_call_leaves_its_answer_owed() -> None:
    async with OldServer() as server, playing(server) as session:
        server.hold()
        call = asyncio.create_task(session.exchange("step", {"message": "slow"}, LONG))
        await asyncio.wait_for(server.received.wait(), LONG)
        call.cancel()
        await asyncio.wait({call}, timeout=LONG)
        assert call.cancelled() and session.owes == "step"
        server.release.set()
        assert json.loads(await session.collect(LONG)) == observation(4.0, echoed="slow", n=1)


async def test_a_connection_that_breaks_in_mid_step_loses_the_episode() -> None:
    async with OldServer() as server, playing(server) as session:
        server.hold()
        call = asyncio.create_task(session.exchange("step", {"message": "a"}, LONG))
        await asyncio.wait_for(server.received.wait(), LONG)
        server.cut()
        with pytest.raises(EpisodeLost, match="step got no answer and its outcome is unknown"):
            await call
        assert not session.is_open


async def test_a_server_that_is_gone_loses_the_episode() -> None:
    async with OldServer() as server:
        session = await HttpSession.open(server.url)
    with pytest.raises(EpisodeLost, match="reset got no answer"):
        await session.exchange("reset", None, LONG)
    await session.close()


async def test_closing_gives_up_the_request_in_flight_and_may_be_repeated() -> None:
    async with OldServer() as server:
        session = await HttpSession.open(server.url)
        server.hold()
        call = asyncio.create_task(session.exchange("step", {"message": "a"}, LONG))
        await asyncio.wait_for(server.received.wait(), LONG)
        await asyncio.gather(session.close(), session.close())
        with pytest.raises(EpisodeLost, match="closed by this side"):
            await call
        assert not session.is_open
        assert repr(session) == f"<HttpSession {server.url} closed>"
        await asyncio.wait_for(session.wait_closed(), LONG)


@pytest.mark.parametrize("data", [{"message": object()}, {"message": float("nan")}])
async def test_data_that_is_no_json_is_refused_before_anything_is_sent(data: dict[str, Any]) -> None:
    async with OldServer() as server, playing(server) as session:
        with pytest.raises((TypeError, ValueError)):
            await session.exchange("step", data, LONG)
        assert server.requests == [] and session.owes is None


async def test_opening_asks_for_the_servers_health_first() -> None:
    async with OldServer() as server:
        server.answers["/health"] = PlainTextResponse("hello")
        with pytest.raises(NotAnEnvironment, match="/health is no JSON"):
            await HttpSession.open(server.url)
        server.answers["/health"] = PlainTextResponse("starting", 503)
        with pytest.raises(ServerUnreachable, match="HTTP 503"):
            await HttpSession.open(server.url)


async def test_an_old_server_has_no_websocket() -> None:
    async with OldServer() as server:
        with pytest.raises(WebSocketRefused):
            await Connection.open(server.url)


async def test_an_answer_that_is_no_http_ends_the_session() -> None:
    async def garbage(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        healthy = b'HTTP/1.1 200 OK\r\nContent-Length: 21\r\n\r\n{"status": "healthy"}'
        writer.write(healthy if request.startswith(b"GET /health ") else b"SSH-2.0\r\n")

    async with peer(garbage) as url:
        session = await HttpSession.open(url)
        with pytest.raises(EpisodeLost, match="the connection broke"):
            await session.exchange("reset", None, LONG)
        await session.close()
