"""MCP over a WebSocket: one connection, one agent, one lane. One JSON-RPC message a text frame, both eras.

The lane ends with the connection, at once, also in the middle of a step. Nothing is pinged: an environment that computes for
minutes must not cost anybody their connection.
"""

from __future__ import annotations

from http import HTTPStatus

from starlette.types import Receive, Scope, Send

from openenv_gateway.errors import LaneBusy
from openenv_gateway.transports.access import principal_in
from openenv_gateway.transports.conversation import Conversation
from openenv_gateway.transports.gateway import Endpoint
from openenv_gateway.transports.socket import Socket

SUBPROTOCOL = "mcp"
"""Offered by the clients of MCP's own libraries; not asked for."""


class McpSocket:
    """The endpoint `WS /envs/{env}/mcp`. The server bounds a message's size (see `cli.serve`)."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        socket = Socket(scope, receive, send)
        try:
            conversation = Conversation(self._endpoint, principal_in(scope).name, socket.send)
        except LaneBusy as error:
            await socket.deny(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
            return
        try:
            if await socket.accept(SUBPROTOCOL):
                while (message := await socket.receive()) is not None:
                    await conversation.take(message)
        finally:
            await conversation.end()
