"""Lines over file descriptors, for stdio: read and written by threads of their own, so that neither a host that sends nothing
nor one that reads nothing can hold up the event loop (and with it signals and the end).

Both use the descriptors themselves: a thread that waits inside a buffered file holds its lock, and the interpreter aborts when
it cannot have that lock at its end.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
from collections.abc import Iterator

log = logging.getLogger(__name__)

CHUNK = 64 * 1024


def lines_of(descriptor: int, limit: int) -> Iterator[bytes | None]:
    """The lines that come, each when it is there, without their line breaks; a last one needs none. None stands for a line of
    more than `limit` bytes: it is dropped whole, and no part of it is taken for a message. Raises OSError."""
    begun: list[bytes] = []
    size = 0
    while chunk := os.read(descriptor, CHUNK):
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            yield None if size + len(end) > limit else b"".join([*begun, end])
            begun, size = [], 0
        size += len(rest)
        begun = [*begun, rest] if size <= limit else []
    if size:
        yield None if size > limit else b"".join(begun)


class LineWriter:
    """Writes lines in order, from a thread of its own. `write` never waits."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="stdout", daemon=True)
        self._thread.start()

    def write(self, line: bytes) -> None:
        """Queue one line (without its line break)."""
        self._lines.put(line)

    def close(self, timeout_s: float) -> None:
        """Wait, at most `timeout_s`, until everything is written. A host that reads nothing misses the rest."""
        self._lines.put(None)
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            log.warning("the host does not read stdout: answers were lost")

    def _run(self) -> None:
        while (line := self._lines.get()) is not None:
            try:
                self._write(line + b"\n")
            except OSError as error:
                log.warning("the host closed stdout, answers are lost: %s", error)
                return

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._descriptor, view) :]
