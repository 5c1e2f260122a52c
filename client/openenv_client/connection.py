"""One WebSocket to `/ws` = one environment session.

Every frame goes into the `Inbox` as it comes, and callers wait there; a task of the connection's own waits for its end. So no
cancellation can lose a frame, a frame that answers nothing is noticed at once, and so is the end of the connection.

A handshake that succeeds proves nothing: a server without a free slot, or whose environment cannot be built, accepts it, sends
one error frame and closes. The first exchange reads that frame, also when it comes before or while the request is sent,
and raises it as CapacityReached, FactoryFailed or SessionRefused.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from functools import partial
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode
from websockets.protocol import State

from openenv_client.dialing import CLOSE_TIMEOUT_S, dial
from openenv_client.direct import DirectConnection
from openenv_client.errors import BadReply, EpisodeLost, OpenEnvError
from openenv_client.frames import CLOSE, REFUSALS, Dumps, ErrorFrame, Kind, parse_reply, request_frame
from openenv_client.inbox import Inbox
from openenv_client.lifecycle import OVER, Phase
from openenv_client.urls import shown, websocket_url

__all__ = ["Connection", "websocket_url"]

logger = logging.getLogger(__name__)

# Also SESSION_ERROR: to a request that is a JSON object in a text frame it is only ever sent when there is no session.
_FIRST_FRAME_REFUSALS = (*REFUSALS, "SESSION_ERROR")

_PING_TIMEOUT = "keepalive ping timeout"
"""The reason with which websockets closes a connection whose pings get no answer."""


class Connection:
    """An EnvironmentSession over one WebSocket. Made by `open`; whoever opens it closes it."""

    def __init__(self, websocket: DirectConnection, url: str, max_message_bytes: int, dumps: Dumps = json.dumps) -> None:
        self._websocket = websocket
        self._url = url
        self._max_message_bytes = max_message_bytes
        self._dumps = dumps
        self._inbox = Inbox()
        websocket.deliver_to(self._receive, max_message_bytes)
        self._reader = asyncio.create_task(self._read(), name=f"reader of {url}")

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        connect_timeout_s: float = 10.0,
        max_message_bytes: int = 100 * 2**20,
        headers: Mapping[str, str] | None = None,
        ping_interval_s: float | None = None,
        ping_timeout_s: float | None = None,
        dumps: Dumps = json.dumps,
    ) -> Connection:
        """Connect to the environment server whose base URL (http, https, ws, wss or a bare host) is `url`.

        Returns without waiting for the server to grant the session: the first exchange tells. Proxies are taken from the
        environment, except for loopback hosts. `max_message_bytes` bounds a reply; a larger one ends the session.
        `dumps` is the JSON encoder of requests.

        Raises ServerUnreachable, WebSocketRefused, NotAnEnvironment, or ValueError for what is no server URL.
        """
        websocket = await dial(
            url,
            connect_timeout_s=connect_timeout_s,
            max_message_bytes=max_message_bytes,
            headers=headers,
            ping_interval_s=ping_interval_s,
            ping_timeout_s=ping_timeout_s,
        )
        return cls(websocket, shown(websocket_url(url)), max_message_bytes, dumps)

    def __repr__(self) -> str:
        return f"<Connection {self._url} {self._inbox.phase.value}>"

    @property
    def owes(self) -> Kind | None:
        """See EnvironmentSession."""
        return self._inbox.owes

    @property
    def is_open(self) -> bool:
        """See EnvironmentSession."""
        return self._websocket.state is State.OPEN and self._inbox.phase not in OVER

    async def exchange(self, kind: Kind, data: Mapping[str, Any] | None, timeout_s: float) -> bytes:
        """See EnvironmentSession."""
        frame = request_frame(kind, data, self._dumps)
        self._inbox.check()
        if self._websocket.state is not State.OPEN:
            await self._finish_closing()
            raise self._inbox.failure()
        self._inbox.send(kind)
        self._send(frame)
        return await self._reply(timeout_s)

    async def collect(self, timeout_s: float) -> bytes:
        """See EnvironmentSession."""
        return await self._reply(timeout_s)

    async def close(self) -> None:
        """See EnvironmentSession."""
        was_open, phase = self.is_open, self._inbox.phase
        self._inbox.close()
        try:
            if was_open and phase in (Phase.FRESH, Phase.IDLE):
                self._send(CLOSE)
            await self._websocket.close()
            await asyncio.wait({self._reader}, timeout=CLOSE_TIMEOUT_S)
        finally:
            # No-op after a closing handshake; otherwise (a busy server, a cancelled close) this ends the connection now.
            self._websocket.transport.abort()
        if was_open and self._websocket.close_code == CloseCode.ABNORMAL_CLOSURE:
            logger.debug("%s was cut: no closing handshake within %g s", self, CLOSE_TIMEOUT_S)

    def cut(self, reason: str) -> None:
        """End the session at once. `reason` is told by the EpisodeLost of whoever waits for a reply, or tries to go on."""
        self._inbox.lose(partial(EpisodeLost, reason))
        self._websocket.transport.abort()

    @property
    def ended_by(self) -> OpenEnvError | None:
        """Why the session is over, None while it is not."""
        return self._inbox.failure() if self._inbox.phase in OVER else None

    async def wait_closed(self) -> None:
        """See EnvironmentSession."""
        await self._inbox.wait_over()

    async def _reply(self, timeout_s: float) -> bytes:
        try:
            return await self._inbox.reply(timeout_s)
        except TimeoutError:
            if self._websocket.state is State.OPEN:
                raise
        # The server said goodbye but keeps the TCP connection: no reply will come on it.
        await self._finish_closing()
        return await self._inbox.reply(timeout_s)

    def _send(self, frame: str | bytes) -> None:
        if not self._websocket.send_now(frame.encode() if isinstance(frame, str) else frame):
            # Not raised: the reader tells why the connection ended.
            logger.debug("%s ended while a frame was sent", self)

    async def _finish_closing(self) -> None:
        """Wait for the end of a closing handshake that the server began, about a second at most, then cut."""
        await self._websocket.close()
        await self._inbox.wait_over()

    async def _read(self) -> None:
        try:
            while True:
                self._receive(await self._websocket.recv(decode=False))
        except ConnectionClosed as closed:
            self._inbox.lose(partial(EpisodeLost, self._why(closed)))
        except BaseException:
            # An event loop that stops cancels this task. Nothing is read any more, so nothing may look open.
            self._inbox.lose(partial(EpisodeLost, "the connection's reader was stopped"))
            self._websocket.transport.abort()
            raise

    def _receive(self, frame: bytes) -> None:
        phase = self._inbox.phase
        if phase is Phase.FRESH:
            self._receive_unsolicited(frame)
        elif phase is Phase.OPENING and (refusal := _refusal_in(frame)) is not None:
            self._inbox.refuse(refusal.as_refusal)
        else:
            self._inbox.receive(frame)
        if self._inbox.phase is Phase.LOST:
            self._websocket.transport.abort()

    def _receive_unsolicited(self, frame: bytes) -> None:
        """The server speaks first: with an error frame it refuses the session, with anything else it is no OpenEnv server."""
        try:
            reply = parse_reply(frame)
        except BadReply as error:
            self._inbox.lose(partial(BadReply, error.field, error.found))
            return
        if isinstance(reply, ErrorFrame):
            self._inbox.refuse(reply.as_refusal)
        else:
            self._inbox.lose(partial(BadReply, "the first frame", "a reply to a request that was never sent"))

    def _why(self, closed: ConnectionClosed) -> str:
        if closed.sent is not None and closed.sent.code == CloseCode.MESSAGE_TOO_BIG:
            return f"a reply was larger than {self._max_message_bytes} bytes"
        if closed.sent is not None and closed.sent.reason == _PING_TIMEOUT and not closed.rcvd_then_sent:
            return "WebSocket pings got no answer (a proxy drops them, or the server is busy); they can be switched off"
        if closed.rcvd is None:
            return f"the connection to {self._url} broke (the server died, or the network)"
        reason = f" ({closed.rcvd.reason})" if closed.rcvd.reason else ""
        return f"the server closed the connection with code {closed.rcvd.code}{reason}"


def _refusal_in(frame: bytes) -> ErrorFrame | None:
    """The refusal in a session's first frame, None if the frame is an ordinary reply."""
    # Looked for as text first: a first observation may be large, and parsing it here would be for nothing.
    if not any(code.encode() in frame for code in _FIRST_FRAME_REFUSALS):
        return None
    try:
        reply = parse_reply(frame)
    except BadReply:
        return None  # the caller parses it too, and gets this error itself
    return reply if isinstance(reply, ErrorFrame) and reply.code in _FIRST_FRAME_REFUSALS else None
