"""transports/direct.py: what a response is on its connection, in how many writes, and what its end and the client's mean."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest
from testkit.raw_http import LONG_S

from openenv_gateway.mcp.inflight import InFlight
from openenv_gateway.mcp.jsonrpc import RpcError
from openenv_gateway.transports.access import EVERYBODY
from openenv_gateway.transports.direct import JOINED, DirectExchange
from openenv_gateway.transports.headers import Head
from openenv_gateway.transports.lasting import LastingCalls

BOTH = b"application/json, text/event-stream"


@dataclass
class Written:
    """A Line that keeps what goes out."""

    writes: list[bytes] = field(default_factory=list)
    done_with: list[DirectExchange] = field(default_factory=list)
    default_headers: bytes = b"date: today\r\n"

    def write(self, data: bytes) -> None:
        self.writes.append(data)

    async def drain(self) -> None:
        return

    def done(self, exchange: DirectExchange) -> None:
        self.done_with.append(exchange)


def exchange_on(line: Written, accept: bytes = BOTH, after_s: float = 100.0) -> DirectExchange:
    return DirectExchange(Head("POST", [(b"accept", accept)], b""), EVERYBODY, line, LastingCalls(after_s))


async def test_a_small_answer_is_one_write_and_a_large_one_is_not_copied() -> None:
    line = Written()
    exchange = exchange_on(line)
    await exchange.answer(1, {"a": 1})
    body = b'{"jsonrpc":"2.0","id":1,"result":{"a":1}}'
    head = b"HTTP/1.1 200 OK\r\ndate: today\r\ncontent-length: %d\r\ncontent-type: application/json\r\n\r\n"
    assert line.writes == [head % len(body) + body]
    assert exchange.is_started and exchange.is_complete
    large = Written()
    await exchange_on(large).answer(1, {"a": "x" * JOINED})
    assert len(large.writes) == 2 and large.writes[0] == head % len(large.writes[1])


@pytest.mark.parametrize(
    ("accept", "begins", "ends"),
    [
        (BOTH, b"HTTP/1.1 200 OK\r\ndate: today\r\nmcp-session-id: s\r\ncontent-type: application/json\r\n", b"{}}"),
        (b"text/event-stream", b"HTTP/1.1 200 OK\r\ndate: today\r\nmcp-session-id: s\r\n", b"{}}\n\n"),
    ],
)
async def test_an_answer_with_headers_of_its_own_or_as_an_event(accept: bytes, begins: bytes, ends: bytes) -> None:
    line = Written()
    await exchange_on(line, accept).answer(1, {}, (("mcp-session-id", "s"),))
    (response,) = line.writes
    assert response.startswith(begins) and response.endswith(ends)
    head, _, body = response.partition(b"\r\n\r\n")
    assert b"content-length: %d" % len(body) in head


async def test_statuses_have_their_phrase_and_an_accepted_notification_no_body() -> None:
    line = Written()
    await exchange_on(line).answer_error(404, 1, RpcError(-32601, "no"))
    await exchange_on(line).accept()
    assert line.writes[0].startswith(b"HTTP/1.1 404 Not Found\r\ndate: today\r\n")
    assert line.writes[1] == b"HTTP/1.1 202 Accepted\r\ndate: today\r\ncontent-length: 0\r\n\r\n"


async def test_a_stream_goes_out_in_chunks_of_which_none_but_the_last_is_empty() -> None:
    line = Written()
    exchange = exchange_on(line)
    await exchange.stream(b"one\n\n")
    await exchange.stream(b"")
    assert (exchange.is_started, exchange.is_complete) == (True, False)
    await exchange.answer(1, {})
    assert exchange.is_complete
    assert line.writes[0].startswith(b"HTTP/1.1 200 OK\r\n") and b"transfer-encoding: chunked\r\n" in line.writes[0]
    event = b'event: message\ndata: {"jsonrpc":"2.0","id":1,"result":{}}\n\n'
    assert b"".join(line.writes[1:]) == b"5\r\none\n\n\r\n" + b"%x\r\n%b\r\n0\r\n\r\n" % (len(event), event)


async def test_a_stream_that_ends_before_its_request_gives_the_connection_on() -> None:
    line = Written()
    exchange = exchange_on(line)
    await exchange.start_stream()
    await exchange.end_stream()
    assert exchange.is_complete and line.done_with == [exchange] and line.writes[-1] == b"0\r\n\r\n"


async def test_whoever_waits_for_the_leave_learns_it_and_a_cancelled_waiter_spoils_it_for_nobody() -> None:
    exchange = exchange_on(Written())
    first, second = (asyncio.ensure_future(exchange.disconnected()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait({first})
    assert not second.done()
    exchange.leave()
    await asyncio.wait_for(second, LONG_S)
    await asyncio.wait_for(exchange.disconnected(), LONG_S)
    assert exchange.is_gone


@pytest.mark.parametrize("attended", [False, True])
async def test_a_call_learns_once_that_its_client_leaves_whether_it_lasted_or_not(attended: bool) -> None:
    exchange = exchange_on(Written(), after_s=0.0 if attended else 100.0)
    left: asyncio.Queue[str] = asyncio.Queue()
    with exchange.attended(InFlight(), lambda: left.put_nowait("left")):
        await asyncio.sleep(0.02)  # it lasts
        exchange.leave()
        assert await asyncio.wait_for(left.get(), LONG_S) == "left"
        await asyncio.sleep(0.02)
    assert left.empty()


async def test_a_leave_after_the_call_is_nobodys_business() -> None:
    exchange = exchange_on(Written())
    left: list[Any] = []
    with exchange.attended(InFlight(), lambda: left.append(1)):
        await asyncio.sleep(0)
    exchange.leave()
    assert left == []
