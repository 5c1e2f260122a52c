"""The floor: a relay with no feature at all. POST /mcp tools/call → one WebSocket round trip → JSON result.

    ENV_WS=ws://127.0.0.1:PORT/ws uvicorn floor:app --app-dir tests/bench --http httptools --loop uvloop

No validation, no sessions to speak of, no tokens, no mapping, no late replies: whatever a gateway does comes on top of this.
Agents that share an HTTP connection share an episode, so it is for measuring only.
"""

from __future__ import annotations

import os
from typing import Any

import orjson
from starlette.types import Receive, Scope, Send
from websockets.asyncio.client import ClientConnection, connect

connections: dict[Any, ClientConnection] = {}


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        await _live(receive, send)
        return
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    if scope["method"] != "POST":
        await _respond(send, b"", [])
        return
    request = orjson.loads(body)
    headers: list[tuple[bytes, bytes]] = []
    if request["method"] == "tools/call":
        result = await _call(scope["client"], request["params"]["arguments"])
    else:
        server = {"name": "floor", "version": "0"}
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": server}
        if request["method"] == "initialize":
            headers = [(b"mcp-session-id", os.urandom(8).hex().encode())]
    answer = orjson.dumps({"jsonrpc": "2.0", "id": request.get("id"), "result": result})
    await _respond(send, answer, [*headers, (b"content-type", b"application/json")])


async def _live(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


async def _call(agent: Any, arguments: Any) -> dict[str, Any]:
    websocket = connections.get(agent)  # one environment session per agent's connection, in either era
    if websocket is None:
        websocket = await connect(os.environ["ENV_WS"], compression=None, max_size=None, proxy=None)
        connections[agent] = websocket
    await websocket.send(orjson.dumps({"type": "step", "data": arguments}), text=True)
    data = orjson.loads(await websocket.recv(decode=False))["data"]
    text = orjson.dumps(data["observation"]).decode()
    return {"content": [{"type": "text", "text": text}], "structuredContent": data, "isError": False}


async def _respond(send: Send, body: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    headers = [*headers, (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
