"""Two sessions that use the same ids at once, and cancel: whatever the order, no answer is swapped, no action doubled."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

import httpx
from hypothesis import given, settings
from hypothesis import strategies as st
from testkit.gateways import environment_settings, serving
from testkit.scripted import ScriptedServer

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}

moves = st.lists(
    st.one_of(
        st.tuples(st.just("call"), st.integers(0, 1), st.integers(1, 3)),
        st.tuples(st.just("cancel"), st.integers(0, 1), st.integers(1, 3)),
        st.tuples(st.sampled_from(["hold", "release", "pause"]), st.just(0), st.just(0)),
    ),
    min_size=4,
    max_size=14,
)


@dataclass
class Player:
    """One MCP session. `calls` are (id, tag, response) of the steps that it asked for; tags are unique."""

    number: int
    http: httpx.AsyncClient
    url: str
    headers: dict[str, str] = field(default_factory=dict)
    calls: list[tuple[int, str, asyncio.Task[httpx.Response]]] = field(default_factory=list)

    async def begin(self) -> None:
        hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO}
        self.headers["mcp-session-id"] = (await self.http.post(self.url, json=hello)).headers["mcp-session-id"]
        await self.post(0, "tools/call", {"name": "reset"})

    def post(self, identity: int | None, method: str, params: dict[str, Any]) -> asyncio.Task[httpx.Response]:
        message = {"jsonrpc": "2.0", "method": method, "params": params} | ({} if identity is None else {"id": identity})
        return asyncio.ensure_future(self.http.post(self.url, json=message, headers=self.headers))

    def step(self, identity: int) -> None:
        tag = f"player {self.number} call {len(self.calls)}"
        arguments = {"add": 0, "tag": tag}
        self.calls.append((identity, tag, self.post(identity, "tools/call", {"name": "step", "arguments": arguments})))

    async def cancel(self, identity: int) -> None:
        assert (await self.post(None, "notifications/cancelled", {"requestId": identity})).status_code == 202

    async def check(self) -> None:
        """Every answer has its request's id and is about this player's own steps alone."""
        for identity, tag, task in self.calls:
            answer = (await task).json()
            assert answer["id"] == identity
            text = json.dumps(answer)
            assert f"player {1 - self.number}" not in text
            if "result" in answer and not answer["result"]["isError"]:
                assert answer["result"]["structuredContent"]["observation"]["echo"]["tag"] == tag


async def play(script: list[tuple[str, int, int]]) -> None:
    async with ScriptedServer() as server, httpx.AsyncClient(trust_env=False) as http:
        async with serving(environment_settings(server.url)) as served:
            players = [Player(number, http, served.url()) for number in range(2)]
            for player in players:
                await player.begin()
            for move, number, identity in script:
                match move:
                    case "call":
                        players[number].step(identity)
                    case "cancel":
                        await players[number].cancel(identity)
                    case "hold":
                        server.hold_reply()
                    case "release":
                        server.release_reply()
                    case _:
                        await asyncio.sleep(0.005)
            server.release_reply()
            async with asyncio.timeout(20):
                for player in players:
                    await player.check()
        tags = [request.frame["data"]["tag"] for request in server.requests if request.frame["type"] == "step"]
        assert len(tags) == len(set(tags))
        for request in server.requests:
            if request.frame["type"] == "step":
                assert request.frame["data"]["tag"].startswith(f"player {request.session - 1} ")


@settings(max_examples=25)
@given(moves)
def test_no_interleaving_of_equal_ids_and_cancellations_swaps_an_answer_or_doubles_an_action(
    script: list[tuple[str, int, int]],
) -> None:
    asyncio.run(play(script))
