"""RFC 6455 frames, as far as plain text messages need them: one is built, one is recognised, and boundaries are followed. Pure.

Everything else of the protocol (control frames, fragments, closing) is the library's. See `direct`.
"""

from __future__ import annotations

import os

try:
    from websockets.speedups import apply_mask
except ImportError:  # a platform for which the library has no compiled part
    from websockets.utils import apply_mask

WHOLE_TEXT = 0x81
"""The first byte of an unfragmented text frame without extensions."""
MASKED = 0x80
SHORT, MEDIUM, LONG = 125, 126, 127
"""The largest length in the second byte, and what stands there instead of a longer one: 16 bits follow, or 64."""

_LONGEST_HEAD = 14
_POOL = 4096


class Masks:
    """Masking keys as section 5.3 wants them, unpredictable, without asking the system for each."""

    def __init__(self) -> None:
        self._pool, self._at = b"", _POOL

    def next(self) -> bytes:
        """Four fresh random bytes."""
        at = self._at
        if at >= _POOL:
            self._pool, at = os.urandom(_POOL), 0
        self._at = at + 4
        return self._pool[at : at + 4]


def text_frame(message: bytes, mask: bytes) -> bytes:
    """A client's frame with the whole `message`."""
    size = len(message)
    if size <= SHORT:
        head = bytes((WHOLE_TEXT, MASKED | size))
    elif size < 2**16:
        head = bytes((WHOLE_TEXT, MASKED | MEDIUM, size >> 8, size & 0xFF))
    else:
        head = bytes((WHOLE_TEXT, MASKED | LONG)) + size.to_bytes(8, "big")
    return b"%b%b%b" % (head, mask, apply_mask(message, mask))


def whole_text(data: bytes, limit: int) -> bytes | None:
    """The message, if `data` is exactly one unfragmented, unmasked text frame of at most `limit` bytes; else None."""
    size = len(data)
    if size < 2 or data[0] != WHOLE_TEXT:
        return None
    start, length = 2, data[1]
    if length == MEDIUM and size >= 4:
        start, length = 4, data[2] << 8 | data[3]
    elif length == LONG and size >= 10:
        start, length = 10, int.from_bytes(data[2:10], "big")
    elif length > SHORT:
        return None
    return data[start:] if start + length == size and length <= limit else None


class Boundaries:
    """Follows a stream of frames only to know where one ends. `between`: the stream stands between two frames."""

    def __init__(self) -> None:
        self._left = 0
        self._head = b""

    @property
    def between(self) -> bool:
        return self._left == 0 and not self._head

    def follow(self, data: bytes) -> None:
        """These bytes have come."""
        at, end = 0, len(data)
        while at < end:
            if self._left:
                passed = min(self._left, end - at)
                self._left -= passed
                at += passed
                continue
            head = self._head + data[at : at + _LONGEST_HEAD]
            size = _sizes(head)
            if size is None:
                self._head = head
                return
            at += size[0] - len(self._head)
            self._head, self._left = b"", size[1]


def _sizes(head: bytes) -> tuple[int, int] | None:
    """Bytes of a frame's head and of what follows it; None if `head` is too short to tell."""
    if len(head) < 2:
        return None
    length, extra = head[1] & ~MASKED, {MEDIUM: 2, LONG: 8}.get(head[1] & ~MASKED, 0)
    end = 2 + extra
    if len(head) < end:
        return None
    mask = 4 if head[1] & MASKED else 0
    if len(head) < end + mask:
        return None
    return end + mask, int.from_bytes(head[2:end], "big") if extra else length
