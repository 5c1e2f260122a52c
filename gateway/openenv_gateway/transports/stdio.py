"""MCP over stdin and stdout: one process, one agent, one lane. One JSON-RPC message a line, both eras.

Stdout belongs to JSON-RPC alone: the real one is set aside at the start and file descriptor 1 is pointed at stderr, so that
nothing that prints, a launched environment included, can break the stream.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
from typing import BinaryIO

from openenv_gateway.pool.threads import in_thread
from openenv_gateway.transports.conversation import Conversation
from openenv_gateway.transports.gateway import Endpoint
from openenv_gateway.transports.lines import LineWriter, lines_of

log = logging.getLogger(__name__)

MAX_LINE = 64 * 2**20
LAST_ANSWERS_S = 1.0
"""How long requests that came just before EOF have for their answers (`printf … | openenv-gateway stdio demo`)."""


def claim_stdout() -> BinaryIO:
    """The real stdout, for JSON-RPC only; everything else that is written to stdout goes to stderr from now on."""
    sys.stdout.flush()
    ours = os.dup(1)
    os.dup2(2, 1)
    return os.fdopen(ours, "wb")


class End:
    """No more messages come: EOF, or a signal."""


class StdioServer:
    """Serves one endpoint until stdin ends."""

    def __init__(self, endpoint: Endpoint, stdin: BinaryIO, stdout: BinaryIO) -> None:
        self._stdin = stdin
        self._stdout = stdout  # kept: a file that nobody holds closes its descriptor
        self._writer = LineWriter(stdout.fileno())
        self._conversation = Conversation(endpoint, "process", self._write)
        self._lines: asyncio.Queue[bytes | None | End] = asyncio.Queue()

    async def serve(self) -> None:
        """Answer until EOF; then give up what takes longer than a moment, and end the lane."""
        loop = asyncio.get_running_loop()
        # A thread, because stdin may be a pipe, a file or a terminal, and only pipes can be polled.
        threading.Thread(target=self._read, args=(loop,), name="stdin", daemon=True).start()
        while not isinstance(line := await self._lines.get(), End):
            if line is None:
                await self._conversation.refuse(f"A message of more than {MAX_LINE} bytes was dropped")
            elif line.strip():
                await self._conversation.take(line)
        await self._conversation.end(LAST_ANSWERS_S)
        await in_thread(lambda: self._writer.close(LAST_ANSWERS_S), "last answers")

    def stop(self) -> None:
        """End as at EOF."""
        self._lines.put_nowait(End())

    async def _write(self, message: bytes) -> None:
        self._writer.write(message)

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            for line in lines_of(self._stdin.fileno(), MAX_LINE):
                loop.call_soon_threadsafe(self._lines.put_nowait, line)
        except (OSError, ValueError) as error:
            log.warning("stdin cannot be read any more: %s", error)
        try:
            loop.call_soon_threadsafe(self._lines.put_nowait, End())
        except RuntimeError as error:  # the loop is closed: the process is ending for another reason
            log.debug("stdin ended after the server: %s", error)
