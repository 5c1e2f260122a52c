"""What every Python client here does: play one episode of the demo, then give up a call of a slow tool and go on.

    python CLIENT.py '{"demo": URL, "slow": URL, "seed": 1, "cells": [2, 3, 5, 8], "handle": "required"}'

prints one JSON line with what it saw; with "player": NAME it plays an episode of slow steps instead, as patient as its users
have it. A client is a function `connect(url, limit_s)`, where `limit_s` is how long a call may take, None for what the client
itself thinks right: an async context manager of an object with

    async tools() -> {name: input schema}
    async call(tool, arguments) -> Seen

`handle`: when the agent passes back the session_id that `reset` returned: where a tool's schema requires it ("required"), or
wherever a tool takes one ("always").
"""

import asyncio
import json
import sys
from dataclasses import dataclass, field

GIVE_UP_S = 0.7
LIMIT_S = 60.0
TRIES = 6


@dataclass
class Seen:
    """One result, as the client shows it to its model: `told` is {} and `failure` its text when the call failed."""

    told: dict = field(default_factory=dict)
    pictures: list = field(default_factory=list)
    failure: str = ""


class Agent:
    """A client and what a model does with it: it reads the schemas, and passes on the handle that they ask for."""

    def __init__(self, client, handle):
        self._client, self._always, self._handle = client, handle == "always", None
        self.tools = {}

    async def learn(self):
        self.tools = await self._client.tools()

    async def call(self, tool, **arguments):
        asked = "session_id" in self.tools[tool].get("properties" if self._always else "required", ())
        if asked and self._handle is not None:
            arguments["session_id"] = self._handle
        seen = await self._client.call(tool, arguments)
        self._handle = seen.told.get("session_id", self._handle)
        return seen


async def episode(agent, seed, cells):
    await agent.learn()
    turns = [await agent.call("reset", seed=seed), *[await agent.call("step", cell=cell) for cell in cells]]
    state = await agent.call("state")
    return {
        "tools": list(agent.tools),
        "turns": [[turn.told["reward"], turn.told["done"]] for turn in turns],
        "board": state.told["state"]["board"],
        "pictures": [picture for turn in turns for picture in turn.pictures],
    }


async def interruption(agent):
    """Give up a call that takes two seconds, then make another until it is carried out."""
    await agent.learn()
    await agent.call("reset")
    gave_up = await outcome(agent.call("wait", seconds=2), GIVE_UP_S + 0.3)
    told = []
    while not (notes := await outcome(agent.call("note", text="after"), LIMIT_S)).told and len(told) < TRIES:
        told.append(notes.failure)
    state = await agent.call("state")
    return {
        "gave_up": gave_up.failure,
        "told": told,
        "notes": notes.told["observation"]["result"],
        "steps": state.told["state"]["step_count"],
    }


async def slow_episode(agent, player):
    """Notes, with quick and slow steps between them; whatever was not carried out is called again. The notes tell whose episode
    it is, and how often each was taken."""
    await agent.learn()
    await agent.call("reset")
    missed, notes = [], []
    for number, seconds in enumerate([0.1, 0.1, 8, 0.1]):
        waited = await outcome(agent.call("wait", seconds=seconds), LIMIT_S)
        missed += [waited.failure] if waited.failure else []
        while not (noted := await outcome(agent.call("note", text=f"{player} {number}"), LIMIT_S)).told and len(missed) < TRIES:
            missed.append(noted.failure)
        notes = noted.told["observation"]["result"]["result"]
    end = await agent.call("finish")
    state = await agent.call("state")
    return {"missed": missed, "notes": notes, "done": end.told["done"], "steps": state.told["state"]["step_count"]}


async def outcome(call, limit_s):
    """What a call shows; "timed out" when the client's own limit, or else this one, ended it."""
    try:
        return await asyncio.wait_for(call, limit_s)
    except Exception as error:
        if isinstance(error, TimeoutError | asyncio.TimeoutError) or "timed out" in str(error):
            return Seen(failure="timed out")
        raise


async def report(connect, target):
    if "player" in target:
        async with connect(target["slow"], None) as client:
            return await slow_episode(Agent(client, target["handle"]), target["player"])
    async with connect(target["demo"], GIVE_UP_S) as client:
        seen = await episode(Agent(client, target["handle"]), target["seed"], target["cells"])
    async with connect(target["slow"], GIVE_UP_S) as client:
        return {**seen, "interruption": await interruption(Agent(client, target["handle"]))}


def main(connect):
    print(json.dumps(asyncio.run(asyncio.wait_for(report(connect, json.loads(sys.argv[1])), LIMIT_S))), flush=True)


def seen(result):
    """The same of a CallToolResult of `mcp` 2."""
    if result.is_error:
        return Seen(failure=result.content[0].text)
    return Seen(result.structured_content, [block.mime_type for block in result.content if block.type == "image"])
