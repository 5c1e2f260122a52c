"""WebSocket frames as bytes, also those that no library sends."""

from __future__ import annotations

from websockets.frames import Frame


def written(frame: Frame, *, mask: bool = False) -> bytes:
    """The frame as servers send it, or masked as clients do; with its reserved bits, which the library refuses to write."""
    data = bytearray(Frame(frame.opcode, frame.data, frame.fin).serialize(mask=mask))
    data[0] |= frame.rsv1 << 6 | frame.rsv2 << 5 | frame.rsv3 << 4
    return bytes(data)
