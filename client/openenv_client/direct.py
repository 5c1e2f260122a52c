"""A WebSocket connection that hands each message over the moment it is read, and sends without waiting.

The library's own `recv` wakes a task for each message, which then wakes whoever waits for the reply; and its `send` is made
for flow control and fragments. A session has one small request in flight and needs neither.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from websockets.asyncio.client import ClientConnection
from websockets.frames import DATA_OPCODES, Frame
from websockets.protocol import Event, State


class DirectConnection(ClientConnection):
    """For `connect(create_connection=...)`. Messages that come before `deliver_to` was called are kept for it."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._early: list[bytes] = []
        self._deliver: Callable[[bytes], None] = self._early.append
        self._pieces: list[bytes] = []

    def deliver_to(self, deliver: Callable[[bytes], None]) -> None:
        """From now on `deliver` is called with every message, in the order in which they came. It must not raise."""
        self._deliver = deliver
        early, self._early = self._early, []
        for message in early:
            deliver(message)

    def send_now(self, message: bytes) -> bool:
        """Hand a text message to the transport, whole. Returns False if the connection has ended, or ends by it."""
        if self.protocol.state is not State.OPEN:
            return False
        self.protocol.send_text(message)
        try:
            self.send_data()
        except (OSError, RuntimeError):  # the latter is how event loops say that a transport was closed
            self.transport.abort()
            return False
        return True

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
