"""The HTTP connections of a gateway: uvicorn's, with a shorter way for the requests that agents send all the time.

A POST to an MCP place whose head arrives whole and says nothing unusual goes straight to the transport of MCP; where the body
comes behind it, as from clients that write head and body apart, the head is held back until then. Everything else (other routes
and methods, large bodies, pipelining, WebSockets, what is malformed) goes uvicorn's way through ASGI.
Both ways lead to the same code; the shorter one saves parsing the same head again, the ASGI messages, and a system call.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from openenv_gateway.transports.direct import DirectExchange
from openenv_gateway.transports.gate import Gate
from openenv_gateway.transports.guards import Refused
from openenv_gateway.transports.known import KnownHead, learn

log = logging.getLogger(__name__)

HELD = 64 * 2**10
"""Bytes of a request that are held back until all of it has come. Larger ones are uvicorn's, which keeps them as they come."""


class FrontProtocol(HttpToolsProtocol):
    """One connection. For uvicorn.Config(http=...), with a Gate as the application."""

    def __init__(self, config: Config, server_state: ServerState, app_state: dict[str, Any], **more: Any) -> None:
        super().__init__(config, server_state, app_state, **more)
        assert isinstance(config.app, Gate), "this protocol serves a gateway"
        self._gate = config.app
        self._known: KnownHead | None = None
        self._is_between = True  # uvicorn's parser stands between two requests
        self._exchange: DirectExchange | None = None
        self._early = self._held = b""
        self._ends_after = False
        self._answered_at = 0.0
        self._defaults: tuple[list[tuple[bytes, bytes]], bytes] = ([], b"")

    # --- what uvicorn's parser and the event loop call ------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        if self._exchange is not None:  # a client that does not wait for its answer: one request at a time
            self._early += data
            if len(self._early) > HIGH_WATER_LIMIT:  # not before: who does not read does not learn that the client leaves
                self.flow.pause_reading()
            return
        if self._held:
            data, self._held = self._held + data, b""
        if not (self._is_between and (self.cycle is None or self.cycle.response_complete) and self._begin(data)):
            super().data_received(data)

    def on_message_begin(self) -> None:
        self._is_between = False
        super().on_message_begin()

    def on_message_complete(self) -> None:
        self._is_between = True
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._exchange is not None:
            self._exchange.leave()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        if self._exchange is None:
            super().shutdown()
        self._ends_after = True

    def timeout_keep_alive_handler(self) -> None:
        """The timer is left running while requests come the shorter way; only when it fires is it looked how long it is since
        the latest answer."""
        self.timeout_keep_alive_task = None
        left = self._answered_at + self.timeout_keep_alive - self.loop.time()
        is_idle = self._exchange is None and not self._held
        if is_idle and left <= 0:
            super().timeout_keep_alive_handler()
        else:
            self._keep_alive_for(left if is_idle else self.timeout_keep_alive)

    # --- the line of a DirectExchange -----------------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(data)

    async def drain(self) -> None:
        if self.flow.write_paused:
            await self.flow.drain()

    @property
    def default_headers(self) -> bytes:
        given = self.server_state.default_headers
        if given is not self._defaults[0]:  # uvicorn makes a new list when the date changes
            self._defaults = given, b"".join(b"%b: %b\r\n" % field for field in given)
        return self._defaults[1]

    # --- the shorter way ------------------------------------------------------------------------------------------------

    def _begin(self, data: bytes) -> bool:
        """Whether `data` is a request that goes the shorter way; then it is under way, or held until its body has come."""
        if self.flow.write_paused:  # a client that asks on without reading: uvicorn's way waits for it
            return False
        known = self._known
        body = None if known is None else known.body_of(data)
        if known is None or body is None:
            known = self._known = learn(data, self._gate)
            body = None if known is None else known.body_of(data)
        if known is None or body is None:
            return False
        if known.missing and len(data) + known.missing > HELD:
            return False
        try:
            principal = known.principal(self._gate)
        except Refused:
            return False
        if known.missing:
            self._held = data
            return True
        self._exchange = DirectExchange(known.head, principal, self, known.place.lasting)
        task = self.loop.create_task(self._answer(known, self._exchange, body))
        self.tasks.add(task)  # uvicorn ends them when it stops
        return True

    async def _answer(self, known: KnownHead, exchange: DirectExchange, body: bytes) -> None:
        try:
            await known.place.post(exchange, body)
        except Refused as refused:
            await exchange.refuse(refused)
        except asyncio.CancelledError:  # the server stops, and waits no longer
            await self._fail(exchange)
            raise
        except Exception:
            log.exception("a request failed")
            await self._fail(exchange)
        finally:
            if (task := asyncio.current_task(self.loop)) is not None:
                self.tasks.discard(task)
            self.done(exchange)

    async def _fail(self, exchange: DirectExchange) -> None:
        if self._exchange is not exchange:
            return
        self._ends_after = True
        if not exchange.is_started:
            await exchange.respond(500, b"Internal Server Error", "text/plain", (("connection", "close"),))

    def done(self, exchange: DirectExchange) -> None:
        """See Line. Called for every exchange, at its end at the latest."""
        if self._exchange is not exchange:
            return
        self._exchange = None
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        if self._ends_after or not exchange.is_complete:
            self.transport.close()
            return
        self._answered_at = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self._keep_alive_for(self.timeout_keep_alive)
        if self._early:
            early, self._early = self._early, b""
            self.flow.resume_reading()
            self.data_received(early)

    def _keep_alive_for(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(seconds, self.timeout_keep_alive_handler)
