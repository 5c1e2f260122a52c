"""The last bytes of what a server printed."""

from __future__ import annotations

import threading

from .hiding import NOTHING, Hidden

KEEP_BYTES = 64 * 1024


class OutputRing:
    """Keeps the newest `keep_bytes` of a byte stream, and shows it without what is `hidden`. Safe to write and read from
    several threads."""

    def __init__(self, keep_bytes: int = KEEP_BYTES, hidden: Hidden = NOTHING) -> None:
        self._keep, self._hidden = keep_bytes, hidden
        self._bytes = bytearray()
        self._cut = False
        self._lock = threading.Lock()

    def write(self, data: bytes) -> None:
        with self._lock:
            self._bytes += data
            excess = len(self._bytes) - self._keep
            if excess > 0:
                del self._bytes[:excess]
                self._cut = True

    def tail(self, lines: int) -> str:
        """The last `lines` lines as text, without the final line feed; bytes that are no UTF-8 become U+FFFD.

        If older output was dropped, the first line of what is kept is a fragment and is left out, unless it is all there is.
        """
        with self._lock:
            kept, cut = bytes(self._bytes), self._cut
        found = self._hidden(kept.decode("utf-8", "replace")).splitlines()
        if cut and len(found) > 1:
            found = found[1:]
        elif cut:
            found = [self._hidden.without_fragment(line) for line in found]
        return "\n".join(found[-lines:]) if lines > 0 else ""
