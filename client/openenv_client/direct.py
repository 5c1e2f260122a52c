"""A WebSocket connection that hands each message over the moment it is read, and sends without waiting.

The library's own `recv` wakes a task for each message, which then wakes whoever waits for the reply; and its `send` is made
for flow control and fragments. A session has one small request in flight and needs neither: a request is framed here, and a
reply that arrives as one whole text frame is recognised here. The library reads whatever else comes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from websockets.asyncio.client import ClientConnection
from websockets.frames import DATA_OPCODES, Frame
from websockets.protocol import Event, State

from openenv_client.framing import Boundaries, Masks, text_frame, whole_text

END_OF_HEAD = b"\r\n\r\n"

_MASKS = Masks()
_NOTHING = -1
"""The limit below which no message is: the library reads all of them."""


class DirectConnection(ClientConnection):
    """For `connect(create_connection=...)`. Messages that come before `deliver_to` was called are kept for it."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._early: list[bytes] = []
        self._deliver: Callable[[bytes], None] = self._early.append
        self._pieces: list[bytes] = []
        self._boundaries: Boundaries | None = None
        self._is_between = False
        self._limit = _NOTHING

    def deliver_to(self, deliver: Callable[[bytes], None], max_message_bytes: int) -> None:
        """From now on `deliver` is called with every message, in the order in which they came. It must not raise.

        `max_message_bytes` is the library's `max_size`: what is larger is left to the library, which ends the connection.
        """
        self._deliver, self._limit = deliver, max_message_bytes
        early, self._early = self._early, []
        for message in early:
            deliver(message)

    def send_now(self, message: bytes) -> bool:
        """Hand a text message to the transport, whole. Returns False if the connection has ended, or ends by it."""
        if self.protocol.state is not State.OPEN:
            return False
        try:
            self.transport.write(text_frame(message, _MASKS.next()))
        except (OSError, RuntimeError):  # the latter is how event loops say that a transport was closed
            self.transport.abort()
            return False
        return True

    def data_received(self, data: bytes) -> None:
        """Called by the event loop."""
        if self._is_between and self.protocol.state is State.OPEN:
            message = whole_text(data, self._limit)
            if message is not None:
                self._deliver(message)
                return
        super().data_received(data)
        self._follow(data)

    def _follow(self, data: bytes) -> None:
        """Know whether the library waits for a new frame. First comes the handshake's answer. Where that came in pieces,
        or with frames behind it, boundaries stay unknown and the library reads everything."""
        if self._boundaries is not None:
            self._boundaries.follow(data)
            self._is_between = self._boundaries.between and not self._pieces
        elif data.startswith(b"HTTP/") and data.find(END_OF_HEAD) == len(data) - len(END_OF_HEAD):
            self._boundaries, self._is_between = Boundaries(), True

    def process_event(self, event: Event) -> None:
        """Called by the library for what it has read: a frame, or the handshake's answer."""
        if not isinstance(event, Frame) or event.opcode not in DATA_OPCODES:
            super().process_event(event)
        elif event.fin and not self._pieces:
            self._deliver(bytes(event.data))
        else:
            self._pieces.append(bytes(event.data))
            if event.fin:
                pieces, self._pieces = self._pieces, []
                self._deliver(b"".join(pieces))
