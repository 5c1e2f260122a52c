"""transports/front.py against uvicorn's own protocol: the same bytes, in the same pieces, get the same answers and do the same.

Two gateways, each with a scripted environment of its own, run for the whole module; each example plays in a lane of its own.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from testkit.gateways import Served, environment_settings, serving
from testkit.raw_http import RANDOM, RawClient, post, raw_client
from testkit.scripted import ScriptedServer
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from openenv_gateway.transports.front import FrontProtocol

QUIET_S = 0.05
PATIENCE_S = 1.5
"""A request is taken for unanswered when nothing comes for QUIET_S and nothing is under way in the server; or after PATIENCE_S,
when what is under way waits for the rest of a body."""
MODERN = "2026-07-28"
ENVELOPE = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}
LANE = "/mcp?session=LANE"
"""Where a lane of the example's own is called; LANE has four letters, as what takes its place."""


@dataclass(frozen=True)
class Side:
    """A gateway and its environment."""

    server: ScriptedServer
    served: Served

    def forget(self, lane: str) -> list[Any]:
        """What the lane's environment was asked; then both are as if nothing had been."""
        asked = [request.frame for request in self.server.requests]
        self.server.requests.clear()
        lanes = self.served.gateway.endpoints["counting"].environment.lanes
        known = lanes.known("anonymous", lane)
        if known is not None:
            lanes.discard(known)
        return asked

    async def answered(self, client: RawClient, count: int) -> None:
        """Wait until so many answers have come, the server has closed, or it is clear that no answer will come."""
        loop = asyncio.get_running_loop()
        end = loop.time() + PATIENCE_S
        while client.complete < count and not client.is_ended:
            await client.until(count, QUIET_S)
            if not self.served.server.server_state.tasks or loop.time() > end:
                return


Talk = Callable[[RawClient, str, Side], Awaitable[None]]
"""What is said on a connection, in the lane of that name."""


@dataclass(frozen=True)
class Seen:
    """What one side made of an example."""

    answers: list[tuple[int, tuple[tuple[bytes, bytes], ...], bytes, bool]]
    is_ended: bool
    asked: list[Any]


class Both:
    """The gateway as it is, and one with uvicorn's protocol, on one event loop."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._stack = AsyncExitStack()
        self._number = 0
        self._sides: list[Side] = []

    def start(self) -> None:
        for protocol in (FrontProtocol, HttpToolsProtocol):
            self._sides.append(self._runner.run(self._side(protocol)))
        self.play(in_turn([[PLAIN]]))  # the first call asks the environment what it is

    def stop(self) -> None:
        self._runner.run(self._stack.aclose())
        self._runner.close()

    async def _side(self, protocol: type[HttpToolsProtocol]) -> Side:
        server = await self._stack.enter_async_context(ScriptedServer())
        settings = environment_settings(server.url)
        return Side(server, await self._stack.enter_async_context(serving(settings, protocol=protocol)))

    def play(self, talk: Talk) -> tuple[Seen, Seen]:
        """`talk` with each of them, in a lane that it is told the name of."""
        self._number += 1
        front, uvicorn = (self._runner.run(self._seen(side, talk)) for side in self._sides)
        return front, uvicorn

    async def _seen(self, side: Side, talk: Talk) -> Seen:
        lane = f"{self._number:04d}"[-4:]
        async with raw_client(side.served.port) as client:
            await talk(client, lane, side)
            answers = [
                (answer.status, answer.fields, RANDOM.sub(b"?", answer.body), answer.is_complete) for answer in client.answers
            ]
            return Seen(answers, client.is_ended, side.forget(lane))


@pytest.fixture(scope="module")
def both() -> Iterator[Both]:
    both = Both()
    both.start()
    yield both
    both.stop()


# --- what is sent ----------------------------------------------------------------------------------------------------


def message(method: str, params: dict[str, Any], identity: int | None = 1) -> bytes:
    value = {"jsonrpc": "2.0", "method": method, "params": params} | ({} if identity is None else {"id": identity})
    return json.dumps(value).encode()


def step(number: int) -> bytes:
    return message("tools/call", {"name": "step", "arguments": {"add": number}})


STEP, PING, RESET = step(1), message("ping", {}), message("tools/call", {"name": "reset"})
NOTE = message("notifications/initialized", {}, None)
MODERN_LIST = message("tools/list", {"_meta": ENVELOPE})
MODERN_LINES = (f"MCP-Protocol-Version: {MODERN}", "Mcp-Method: tools/list")

WHOLE = [
    post(STEP, target=LANE),
    post(step(2), target=LANE),
    post(step(3), "X-More: of the same", target=LANE),
    post(RESET, target=LANE.replace("/mcp", "/envs/counting/mcp")),
    post(STEP, target=LANE.replace("/mcp", "/%6dcp")),
    post(STEP, target=f"http://elsewhere.example{LANE}"),
    post(NOTE, target=LANE),
    post(PING),
    post(STEP),
    post(b"{nope"),
    post(b""),
    post(MODERN_LIST, *MODERN_LINES),
    post(MODERN_LIST, "Mcp-Method: tools/list"),
    post(PING, "Origin: http://evil.example"),
    post(PING, "Mcp-Session-Id: unknown"),
    post(PING, "Authorization:", "X-Empty:"),
    post(PING, "Connection: keep-alive"),
    post(PING, target="/elsewhere"),
    post(PING, "Content-Type: text/plain"),
    post(PING).replace(b"application/json, text/event-stream", b"text/event-stream"),
    post(PING).replace(b"application/json, text/event-stream", b"text/html"),
    b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"DELETE /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n",
    post(STEP, target=LANE).replace(b"Content-Length: %d" % len(STEP), b"Transfer-Encoding: chunked").replace(
        STEP, b"5\r\n%b\r\n%x;with=more\r\n%b\r\n0\r\nTrailer: x\r\n\r\n" % (STEP[:5], len(STEP) - 5, STEP[5:])
    ),
]
"""Requests that are answered without closing the connection."""

LENGTH = b"Content-Length: %d" % len(STEP)
PLAIN = post(STEP, target=LANE)
SMUGGLED = post(step(7), target=LANE)


def with_length(line: bytes, body: bytes = STEP) -> bytes:
    return PLAIN.replace(LENGTH, line).replace(STEP, body)


CLOSING = with_length(b"%b\r\nConnection: close" % LENGTH)

ODD = [
    with_length(b"%b\r\n%b" % (LENGTH, LENGTH)),
    with_length(b"%b\r\nContent-Length: 3" % LENGTH),
    with_length(b"Content-Length: 3\r\n%b" % LENGTH),
    with_length(LENGTH + b", 3"),
    with_length(b"Content-Length: +%d" % len(STEP)),
    with_length(b"Content-Length: 0%d" % len(STEP)),
    with_length(b"Content-Length: -1"),
    with_length(b"Content-Length: 0x20"),
    with_length(b"Content-Length: 1_0"),
    with_length(b"Content-Length: 99999999999999999999999"),
    with_length(b"Content-Length:"),
    with_length(b"Content-Length:%d" % len(STEP)),
    with_length(b"Content-Length:\t %d \t" % len(STEP)),
    with_length(b"Content-Length : %d" % len(STEP)),
    with_length(b" Content-Length: %d" % len(STEP)),
    with_length(b"cOnTeNt-LeNgTh: %d" % len(STEP)),
    with_length(b"X-Other: y\r\n Content-Length: %d" % len(STEP)),
    with_length(b"X-Other: y\nContent-Length: %d" % len(STEP)),
    with_length(b"X-Other: y\rContent-Length: %d" % len(STEP)),
    with_length(b"X-Other: \x00\r\n%b" % LENGTH),
    with_length(b"X-Other: \xff\r\n%b" % LENGTH),
    with_length(b"X\x00: y\r\n%b" % LENGTH),
    with_length(b"No colon\r\n%b" % LENGTH),
    with_length(b": no name\r\n%b" % LENGTH),
    with_length(b"Transfer-Encoding: chunked\r\n%b" % LENGTH),
    with_length(b"%b\r\nTransfer-Encoding: chunked" % LENGTH, b"0\r\n\r\n" + SMUGGLED),
    with_length(b"Transfer-Encoding: identity\r\n%b" % LENGTH),
    with_length(b"Transfer-Encoding: chunked, identity", b"0\r\n\r\n"),
    with_length(b"Transfer-Encoding : chunked\r\n%b" % LENGTH),
    with_length(b"Transfer-Encoding:\x0bchunked\r\n%b" % LENGTH),
    with_length(b"X: y\r\n Transfer-Encoding: chunked\r\n%b" % LENGTH),
    with_length(b"Transfer-Encoding: chunked", b"zz\r\nnope\r\n0\r\n\r\n"),
    with_length(b"Content-Length: 0", SMUGGLED),
    with_length(b"", SMUGGLED),
    with_length(b"Content-Length: %d" % (len(STEP) + len(SMUGGLED)), STEP + SMUGGLED),
    with_length(b"Content-Length: %d" % (len(STEP) + 10)),
    CLOSING,
    with_length(b"%b\r\nConnection: keep-alive, close" % LENGTH),
    with_length(b"%b\r\nConnection: Keep-Alive" % LENGTH),
    with_length(b"%b\r\nConnection: x" % LENGTH),
    with_length(b"%b\r\nExpect: 100-continue" % LENGTH),
    with_length(b"%b\r\nConnection: upgrade\r\nUpgrade: h2c" % LENGTH),
    with_length(b"%b\r\nUpgrade: websocket" % LENGTH),
    with_length(b"%b\r\nHost: evil.example" % LENGTH),
    PLAIN.replace(b"HTTP/1.1", b"HTTP/1.0"),
    PLAIN.replace(b"HTTP/1.1", b"HTTP/1.0").replace(LENGTH, LENGTH + b"\r\nConnection: keep-alive"),
    PLAIN.replace(b"HTTP/1.1", b"HTTP/2.0"),
    PLAIN.replace(b" HTTP/1.1", b""),
    PLAIN.replace(b"POST ", b"POST  "),
    PLAIN.replace(b"POST ", b"post "),
    PLAIN.replace(b"POST ", b" POST "),
    PLAIN.replace(b"POST /", b"POST \xff/"),
    PLAIN.replace(b"POST " + LANE.encode(), b"POST *"),
    PLAIN.replace(b"POST " + LANE.encode(), b"POST http://127.0.0.1"),
    PLAIN.replace(b"POST " + LANE.encode(), b"POST ?session=LANE"),
    PLAIN.replace(b"/mcp?", b"/mcp\x00?"),
    PLAIN.replace(b"/mcp?", b"/mcp%00?"),
    PLAIN.replace(b"/mcp?", b"//mcp?"),
    PLAIN.replace(b"/mcp?", b"/x/../mcp?"),
    PLAIN.replace(b"\r\n", b"\n"),
    PLAIN.replace(b"\r\n\r\n", b"\n\n"),
    PLAIN.replace(b"\r\n\r\n", b"\r\n\n"),
    PLAIN.replace(b"Host: 127.0.0.1\r\n", b""),
    PLAIN.replace(b"Host: 127.0.0.1", b"Host: evil.example"),
    PLAIN.replace(b"Host: 127.0.0.1", b"Host: 127.0.0.1 \t"),
    PLAIN.replace(b"Host: 127.0.0.1", b"X-Long: " + b"y" * 20_000 + b"\r\nHost: 127.0.0.1"),
    b"\r\n\r\n" + PLAIN,
    PLAIN + b"\r\n",
    PLAIN + SMUGGLED,
    b"CONNECT /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
]
"""Heads that say strange things of their body, of the connection or of the place, and what hides behind them."""


@st.composite
def cut(draw: st.DrawFn, data: bytes) -> list[bytes]:
    """The data in pieces; in one most of the time, which is what the shorter way is for."""
    at = draw(st.one_of(st.just([]), st.lists(st.integers(0, len(data)), max_size=4)))
    return [data[start:end] for start, end in pairwise([0, *sorted(at), len(data)])]


@st.composite
def spoilt(draw: st.DrawFn, data: bytes) -> bytes:
    """The data with a few bytes replaced, put in or left out."""
    at, size = draw(st.integers(0, len(data) - 1)), draw(st.integers(0, 2))
    put = draw(st.sampled_from([b"", b"\r", b"\n", b"\r\n", b" ", b"\t", b"\0", b":", b"0", b"9", b"a", b"\xff"]))
    return data[:at] + put + data[at + size :]


def in_pieces(requests: st.SearchStrategy[bytes]) -> st.SearchStrategy[list[bytes]]:
    return requests.flatmap(cut)


def named(pieces: Sequence[bytes], lane: str) -> list[bytes]:
    """The pieces for the lane; where a cut divides the name, it stays what it is."""
    return [piece.replace(b"LANE", lane.encode()) for piece in pieces]


# --- properties ------------------------------------------------------------------------------------------------------


def in_turn(requests: Sequence[Sequence[bytes]]) -> Talk:
    """Each request after the answer to the one before, until one is not answered."""

    async def talk(client: RawClient, lane: str, side: Side) -> None:
        for pieces in requests:
            before = client.complete
            await client.send(named(pieces, lane))
            await side.answered(client, before + 1)
            if client.complete == before or client.is_ended:
                break
        await client.until(client.complete + 1, 0.02)  # an answer too many, or the connection's end

    return talk


@settings(max_examples=120)
@given(
    st.lists(in_pieces(st.sampled_from(WHOLE)), max_size=3),
    st.sampled_from(ODD + WHOLE).flatmap(lambda data: st.one_of(st.just(data), spoilt(data))).flatmap(cut),
    in_pieces(st.sampled_from(WHOLE)),
)
def test_whatever_a_request_is_like_it_is_answered_as_by_uvicorn_and_does_as_much(
    both: Both, before: list[list[bytes]], odd: list[bytes], after: list[bytes]
) -> None:
    front, uvicorn = both.play(in_turn([*before, odd, after]))
    assert front == uvicorn


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: repr(odd[:40] + odd[-20:]))
def test_each_odd_request_between_two_plain_ones_is_answered_as_by_uvicorn(both: Both, odd: bytes) -> None:
    front, uvicorn = both.play(in_turn([[PLAIN], [odd], [PLAIN]]))
    assert front == uvicorn
    assert front.answers[0][0] == 200


@settings(max_examples=60)
@given(st.lists(st.sampled_from(WHOLE), min_size=1, max_size=6), st.booleans(), st.data())
def test_requests_that_come_at_once_are_all_answered_in_their_order(
    both: Both, requests: list[bytes], closes: bool, data: st.DataObject
) -> None:
    several = [*requests, CLOSING, *requests] if closes else requests  # what comes behind the last is for nobody
    count = len(requests) + closes
    pieces = data.draw(cut(b"".join(several)))

    async def talk(client: RawClient, lane: str, side: Side) -> None:
        await client.send(named(pieces, lane))
        await client.until(count)
        await client.until(count + 1, 0.02)

    front, uvicorn = both.play(talk)
    assert front == uvicorn
    assert (len(front.answers), front.is_ended) == (count, closes)


@pytest.mark.parametrize("request_", [PLAIN, WHOLE[-1]], ids=["length", "chunks"])
def test_a_request_may_be_cut_anywhere(both: Both, request_: bytes) -> None:
    # The name of the lane stays whole.
    places = [at for at in range(1, len(request_)) if b"LANE" not in request_[max(0, at - 3) : at + 3]]

    async def talk(client: RawClient, lane: str, side: Side) -> None:
        for count, at in enumerate(places, start=1):
            await client.send(named([request_[:at], request_[at:]], lane))
            await client.until(count)
            assert client.complete == count, at

    front, uvicorn = both.play(talk)
    assert front == uvicorn


def test_the_shorter_way_is_really_taken(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else this module would compare uvicorn with itself."""
    begun: list[bool] = []
    begin = FrontProtocol._begin

    def noted(self: FrontProtocol, data: bytes) -> bool:
        begun.append(begin(self, data))
        return begun[-1]

    monkeypatch.setattr(FrontProtocol, "_begin", noted)
    both.play(in_turn([[PLAIN], [WHOLE[0]], [WHOLE[4]], [WHOLE[1]]]))
    assert begun == [True, True, False, True]
