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
from collections.abc import Iterator
from typing import Any, BinaryIO

from openenv_gateway.mcp import jsonrpc
from openenv_gateway.mcp.caller import Caller
from openenv_gateway.mcp.jsonrpc import Notification, Request, Response, RpcError
from openenv_gateway.mcp.ladder import envelope_revision, is_modern_request
from openenv_gateway.mcp.revisions import LATEST_HANDSHAKE, Revision
from openenv_gateway.mcp.sessions import McpSession
from openenv_gateway.transports.gateway import Endpoint

log = logging.getLogger(__name__)

MAX_LINE = 64 * 2**20
CHUNK = 64 * 1024
LAST_ANSWERS_S = 0.25
"""How long requests that came just before EOF have for their answers (`printf … | openenv-gateway stdio demo`)."""


def claim_stdout() -> BinaryIO:
    """The real stdout, for JSON-RPC only; everything else that is written to stdout goes to stderr from now on."""
    sys.stdout.flush()
    ours = os.dup(1)
    os.dup2(2, 1)
    return os.fdopen(ours, "wb")


def lines_of(descriptor: int) -> Iterator[bytes]:
    """The lines that come, each when it is there; one beyond MAX_LINE in pieces. Raises OSError.

    Reads the descriptor itself: a thread that waits inside a BufferedReader holds its lock, and the interpreter aborts when it
    cannot have that lock at its end (a signal, while stdin is still open).
    """
    begun: list[bytes] = []
    while chunk := os.read(descriptor, CHUNK):
        begun.append(chunk)
        if b"\n" in chunk:
            *lines, rest = b"".join(begun).split(b"\n")
            yield from lines
            begun = [rest]
        elif len(begun) * CHUNK > MAX_LINE:
            yield b"".join(begun)
            begun = []
    if rest := b"".join(begun):
        yield rest


class StdioServer:
    """Serves one endpoint until stdin ends."""

    def __init__(self, endpoint: Endpoint, stdin: BinaryIO, stdout: BinaryIO) -> None:
        self._endpoint, self._stdin, self._stdout = endpoint, stdin, stdout
        self._session: McpSession = endpoint.sessions.new("process", LATEST_HANDSHAKE)
        self._session.is_process = True
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def serve(self) -> None:
        """Answer until EOF; then give up what takes longer than a moment, and end the lane."""
        loop = asyncio.get_running_loop()
        # A thread, because stdin may be a pipe, a file or a terminal, and only pipes can be polled.
        threading.Thread(target=self._read, args=(loop,), name="stdin", daemon=True).start()
        tasks: set[asyncio.Task[None]] = set()
        while (line := await self._lines.get()) is not None:
            if line.strip():
                task = asyncio.create_task(self._handle(line))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
        if tasks:
            await asyncio.wait(tasks, timeout=LAST_ANSWERS_S)
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._end_lanes()

    def _end_lanes(self) -> None:
        lanes = tuple(self._session.lanes)
        self._endpoint.sessions.end(self._session)
        for lane in lanes:
            self._endpoint.environment.lanes.discard(lane)

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            for line in lines_of(self._stdin.fileno()):
                loop.call_soon_threadsafe(self._lines.put_nowait, line)
        except (OSError, ValueError) as error:
            log.warning("stdin cannot be read any more: %s", error)
        try:
            loop.call_soon_threadsafe(self._lines.put_nowait, None)
        except RuntimeError as error:  # the loop is closed: the process is ending for another reason
            log.debug("stdin ended after the server: %s", error)

    async def _handle(self, line: bytes) -> None:
        value: Any = None
        try:
            value = jsonrpc.decode(line)
            message = jsonrpc.parse_message(value)
            match message:
                case Request():
                    await self._request(message, value)
                case Notification(method="notifications/cancelled", params=params):
                    self._session.cancel(params.get("requestId"))
                case Notification() | Response():
                    pass  # nothing waits for them
        except RpcError as error:
            self._write(jsonrpc.error_message(jsonrpc.id_of(value), error))

    async def _request(self, message: Request, value: Any) -> None:
        caller = Caller(self._revision(message, value), "process", self._session)
        task: asyncio.Task[None] | None = asyncio.current_task()
        assert task is not None
        self._session.begin(message.id, task)
        try:
            result = await self._endpoint.kernel.answer(caller, message.method, message.params)
        finally:
            self._session.end(message.id)
        if message.method == "initialize":
            self._session.revision = Revision(result["protocolVersion"])
        self._write(jsonrpc.result_message(message.id, result))

    def _revision(self, message: Request, value: Any) -> Revision:
        if is_modern_request(None, value):
            return envelope_revision(message.params)
        if message.method == "server/discover":
            # A probe without the envelope: the error tells a dual-era client what to send, or to fall back to initialize.
            return envelope_revision(message.params)
        return self._session.revision

    def _write(self, body: bytes) -> None:
        try:
            self._stdout.write(body + b"\n")
            self._stdout.flush()
        except BrokenPipeError:
            log.warning("the host closed stdout: an answer was lost")
