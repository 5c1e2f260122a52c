"""`WS /envs/{env}/ws`: OpenEnv's simulation frames, so that any OpenEnv client works through the gateway's pool.

One connection is one environment session, opened by its first request (a client cannot tell: it reads a refusal as the answer
to that). With `?session_id=` it takes a session that `openenv/session/create` made, and leaves it as it is when it goes.
Requests are answered strictly in order, and nothing is decided for the client: how long it waits, whether it plays on after
done, whether it resets, are its own affair. A client that gives up closes its connection, which ends its session at once.
"""

from __future__ import annotations

import asyncio
import logging
from typing import cast
from urllib.parse import parse_qs

from starlette.types import Receive, Scope, Send

from openenv_client.errors import OpenEnvError
from openenv_client.frames import Kind
from openenv_gateway.errors import GatewayError
from openenv_gateway.sessions.lane import Lane
from openenv_gateway.transports.access import principal_in
from openenv_gateway.transports.gateway import Endpoint
from openenv_gateway.transports.openenv_frames import BadFrame, Frame, error_frame, failure_frame, parse_frame
from openenv_gateway.transports.socket import Socket

log = logging.getLogger(__name__)

PATIENCE_S = 24 * 3600.0
"""How long a reply is waited for. A client gives up long before; then its connection closes."""
PIPELINED = 16
"""Requests that are read ahead while one is carried out; more wait in the network."""


class OperatorSocket:
    """The endpoint. Who may use it is decided before (see `access`)."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        socket, principal = Socket(scope, receive, send), principal_in(scope).name
        if not await socket.accept():
            return
        attached = _session_id(scope)
        try:
            lane = self._own_lane(principal) if attached is None else self._endpoint.openenv.attach(attached, principal)
        except GatewayError as error:
            await socket.send(failure_frame(error)[0])
            await socket.close()
            return
        try:
            await _Dialogue(socket, lane, self._endpoint, principal).run()
        finally:
            if attached is None:
                self._endpoint.environment.lanes.discard(lane)
            else:
                self._endpoint.openenv.detach(lane)

    def _own_lane(self, principal: str) -> Lane:
        lane = self._endpoint.environment.lanes.new(principal)
        lane.owners.add("its connection")
        return lane


class _Dialogue:
    """One client's requests and their answers."""

    def __init__(self, socket: Socket, lane: Lane, endpoint: Endpoint, principal: str) -> None:
        self._socket, self._lane, self._openenv, self._principal = socket, lane, endpoint.openenv, principal
        self._requests: asyncio.Queue[str | bytes] = asyncio.Queue(PIPELINED)

    async def run(self) -> None:
        """Until the client leaves or the session is over. What is carried out when the client leaves is given up."""
        both = [asyncio.create_task(self._read()), asyncio.create_task(self._work())]
        try:
            done, _ = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in both:
                task.cancel()
            await asyncio.gather(*both, return_exceptions=True)

    async def _read(self) -> None:
        while (message := await self._socket.receive()) is not None:
            await self._requests.put(message)

    async def _work(self) -> None:
        while await self._answered(await self._requests.get()):
            pass
        await self._socket.close()

    async def _answered(self, message: str | bytes) -> bool:
        """Answer one request. Returns whether the session goes on."""
        try:
            frame = parse_frame(message)
            if frame.kind == "close":
                return False
            await self._socket.send(await self._reply(frame))
            return True
        except BadFrame as bad:
            answer, over = bad.frame, bad.ends
        except (OpenEnvError, GatewayError) as error:
            answer, over = failure_frame(error)
        except Exception:
            log.exception("a frame of an OpenEnv client could not be answered")
            answer, over = error_frame("The gateway itself failed: its log has the details", "SESSION_ERROR"), True
        await self._socket.send(answer)
        return not over

    async def _reply(self, frame: Frame) -> bytes:
        if frame.kind == "mcp":
            response = await self._openenv.respond(frame.data, self._principal, self._lane)
            return b'{"type":"mcp","data":' + response + b"}"
        return await self._lane.relay(cast(Kind, frame.kind), frame.data, PATIENCE_S)


def _session_id(scope: Scope) -> str | None:
    query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
    return query["session_id"][0] if "session_id" in query else None
