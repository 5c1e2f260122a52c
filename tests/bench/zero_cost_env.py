"""An OpenEnv `/ws` server whose steps cost next to nothing, so that what is measured is what stands in front of it.

    python tests/bench/zero_cost_env.py [--port 0] [--bytes 1000] [--fill text|numbers]

Serves /health, /schema, /metadata and /ws with any number of sessions, and prints its URL once it does. An observation has
about `--bytes` bytes of JSON: a board, and as much text or as many small numbers as it takes.
"""

from __future__ import annotations

import argparse
import asyncio
import http
from typing import Any

import orjson
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosedError
from websockets.http11 import Request, Response

ACTION = {
    "type": "object",
    "title": "ColumnAction",
    "description": "Drop a piece into a column.",
    "additionalProperties": False,
    "properties": {
        "column": {"type": "integer", "minimum": 0, "maximum": 6, "title": "Column"},
        "metadata": {"type": "object", "additionalProperties": True, "title": "Metadata"},
    },
    "required": ["column"],
}
OBSERVATION = {
    "type": "object",
    "properties": {
        "board": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
        "legal_actions": {"type": "array", "items": {"type": "integer"}},
        "done": {"type": "boolean"},
        "reward": {"anyOf": [{"type": "number"}, {"type": "null"}]},
        "metadata": {"type": "object"},
    },
}
PAGES: dict[str, Any] = {
    "/health": {"status": "healthy"},
    "/schema": {"action": ACTION, "observation": OBSERVATION, "state": {"type": "object"}},
    "/metadata": {"name": "zero-cost", "description": "A board game that never ends.", "version": "1.0.0"},
}


def page(connection: ServerConnection, request: Request) -> Response | None:
    body = PAGES.get(request.path)
    if body is None:
        return None
    response = connection.respond(http.HTTPStatus.OK, orjson.dumps(body).decode())
    del response.headers["Content-Type"]
    response.headers["Content-Type"] = "application/json"
    return response


def filling(size: int, fill: str) -> str | list[int]:
    """What brings a board's observation to about `size` bytes of JSON. Numbers 200..249 take four bytes with their comma."""
    missing = max(0, size - len(orjson.dumps(board(0))))
    return "x" * missing if fill == "text" else [200 + at % 50 for at in range(missing // 4)]


def board(steps: int) -> dict[str, Any]:
    return {"board": [[steps % 3] * 7] * 6, "legal_actions": list(range(7)), "metadata": {}}


async def play(websocket: ServerConnection, filler: str | list[int]) -> None:
    steps = 0
    async for raw in websocket:
        frame = orjson.loads(raw)
        if frame["type"] == "close":
            return
        if frame["type"] == "state":
            reply = {"type": "state", "data": {"episode_id": "e", "step_count": steps}}
        else:
            steps = 0 if frame["type"] == "reset" else steps + 1
            observation = {**board(steps), "filler": filler}
            reply = {"type": "observation", "data": {"observation": observation, "reward": 0.0, "done": False}}
        await websocket.send(orjson.dumps(reply), text=True)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--bytes", type=int, default=1000)
    parser.add_argument("--fill", choices=("text", "numbers"), default="text")
    given = parser.parse_args()
    filler = filling(given.bytes, given.fill)

    async def session(websocket: ServerConnection) -> None:
        try:
            await play(websocket, filler)
        except ConnectionClosedError as gone:
            print(f"a session ended without a closing handshake: {gone}", flush=True)

    async with serve(
        session, "127.0.0.1", given.port, compression=None, max_size=None, ping_interval=None, process_request=page
    ) as server:
        print(f"running on http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
