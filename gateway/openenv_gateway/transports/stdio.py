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
from typing import Any, BinaryIO

from openenv_gateway.mcp import jsonrpc
from openenv_gateway.mcp.caller import Caller
from openenv_gateway.mcp.inflight import InFlight, ticks
from openenv_gateway.mcp.jsonrpc import Notification, Request, Response, RpcError
from openenv_gateway.mcp.ladder import envelope_revision, is_modern_request
from openenv_gateway.mcp.revisions import LATEST_HANDSHAKE, Revision
from openenv_gateway.mcp.sessions import McpSession
from openenv_gateway.pool.threads import in_thread
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
        self._endpoint, self._stdin = endpoint, stdin
        self._stdout = stdout  # kept: a file that nobody holds closes its descriptor
        self._writer = LineWriter(stdout.fileno())
        self._session: McpSession = endpoint.sessions.new("process", LATEST_HANDSHAKE)
        self._session.is_process = True
        self._lines: asyncio.Queue[bytes | None | End] = asyncio.Queue()

    async def serve(self) -> None:
        """Answer until EOF; then give up what takes longer than a moment, and end the lane."""
        loop = asyncio.get_running_loop()
        # A thread, because stdin may be a pipe, a file or a terminal, and only pipes can be polled.
        threading.Thread(target=self._read, args=(loop,), name="stdin", daemon=True).start()
        tasks: set[asyncio.Task[None]] = set()
        while not isinstance(line := await self._lines.get(), End):
            if line is None:
                self._error(None, RpcError(jsonrpc.INVALID_REQUEST, f"A message of more than {MAX_LINE} bytes was dropped"))
            elif line.strip():
                task = asyncio.create_task(self._handle(line))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
        if tasks:
            await asyncio.wait(tasks, timeout=LAST_ANSWERS_S)
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._end_lanes()
        await in_thread(lambda: self._writer.close(LAST_ANSWERS_S), "last answers")

    def stop(self) -> None:
        """End as at EOF."""
        self._lines.put_nowait(End())

    def _end_lanes(self) -> None:
        lanes = tuple(self._session.lanes)
        self._endpoint.sessions.end(self._session)
        for lane in lanes:
            self._endpoint.environment.lanes.discard(lane)

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
            self._error(jsonrpc.id_of(value), error)

    def _error(self, identity: jsonrpc.RequestId | None, error: RpcError) -> None:
        self._writer.write(jsonrpc.error_message(identity, error))

    async def _request(self, message: Request, value: Any) -> None:
        request = InFlight(message.params, self._session.log_level)
        caller = Caller(self._revision(message, value), "process", self._session, request=request)
        self._session.begin(message.id, request)
        ticking = asyncio.ensure_future(self._tick(request)) if request.progress_token is not None else None
        try:
            result = await self._endpoint.kernel.answer(caller, message.method, message.params)
        finally:
            self._session.end(message.id)
            if ticking is not None:
                ticking.cancel()
        self._flush(request)
        if message.method == "initialize":
            self._session.revision = Revision(result["protocolVersion"])
        self._writer.write(jsonrpc.result_message(message.id, result))

    async def _tick(self, request: InFlight) -> None:
        for pause in ticks():
            await asyncio.sleep(pause)
            request.progress()
            self._flush(request)

    def _flush(self, request: InFlight) -> None:
        messages, request.outbox = request.outbox, []
        for message in messages:
            self._writer.write(message)

    def _revision(self, message: Request, value: Any) -> Revision:
        if is_modern_request(None, value):
            return envelope_revision(message.params)
        if message.method == "server/discover":
            # A probe without the envelope: the error tells a dual-era client what to send, or to fall back to initialize.
            return envelope_revision(message.params)
        return self._session.revision
