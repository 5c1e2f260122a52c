"""What users write, in one file that runs on every Python that the client supports: `snippets.py URL [NAME ...]`.

The server at URL counts (see testkit.script.Counting). Prints what each snippet saw, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from typing import Any

from openenv_client import CallToolAction, EnvClient, GenericEnvClient, HTTPEnvClient, MCPToolClient, StepResult
from openenv_client.errors import EpisodeLost


def rollout(url: str) -> list[Any]:
    """A trainer's rollout loop: sync, several sessions of one client, many short episodes."""
    with GenericEnvClient(base_url=url).sync() as env:
        sessions = [env, *(env.new_session() for _ in range(3))]
        returns = []
        for episode in range(3):
            for number, session in enumerate(sessions):
                result = session.reset(seed=episode)
                total = 0.0
                while not result.done:
                    result = session.step({"add": number + 2})
                    total += result.reward or 0.0
                returns.append(total)
        return returns


async def agent(url: str) -> list[Any]:
    """An async program: sessions side by side."""
    async with GenericEnvClient(base_url=url) as env:
        sessions = [await env.new_session() for _ in range(3)]
        await asyncio.gather(*(session.reset() for session in sessions))
        results = await asyncio.gather(*(session.step({"add": n}) for n, session in enumerate(sessions)))
        return [result.observation["count"] for result in results]


async def notebook(url: str) -> list[Any]:
    """A cell in a running loop, without await: results resolve when they are looked at."""
    env = GenericEnvClient(base_url=url)
    seen: list[Any] = [env.reset().observation["count"], env.step({"add": 2}).reward, env.state()["count"]]
    env.close()
    return seen


async def cell_with_await(url: str) -> list[Any]:
    """A cell with await."""
    env = GenericEnvClient(base_url=url)
    seen = [(await env.reset()).observation["count"], (await env.step({"add": 2})).reward]
    await env.close()
    return seen


async def timeout(url: str) -> list[Any]:
    """What asyncio calls a timeout catches ours, also on Python 3.10."""
    async with GenericEnvClient(base_url=url) as env:
        await env.reset()
        seen: list[Any] = []
        try:
            await env.step({"hold": True}, timeout_s=0.05)
        except asyncio.TimeoutError as error:  # noqa: UP041  (another class before 3.11)
            seen += [isinstance(error, TimeoutError), str(error)]
        try:
            await env.step({"add": 1})
        except EpisodeLost as error:
            seen.append(str(error))
        return [*seen, (await env.reset()).observation["count"]]


class Provider:
    """A server that runs already, as a third party's provider."""

    def __init__(self, url: str) -> None:
        self.url = url

    def start_container(self, image: str, **options: Any) -> str:
        return self.url

    def wait_for_ready(self, base_url: str, timeout_s: float = 30.0) -> None:
        pass

    def stop_container(self) -> None:
        pass


def handles(url: str) -> list[Any]:
    """A bootstrap handle in asyncio.run, in a task, and in sync code."""

    async def in_a_task() -> GenericEnvClient:
        return await asyncio.create_task(GenericEnvClient.from_docker_image("x", Provider(url)))

    ways = [asyncio.run(GenericEnvClient.from_docker_image("x", Provider(url))), asyncio.run(in_a_task())]
    seen = [env.reset().observation["count"] for env in ways]
    for env in ways:
        env.close()
    with GenericEnvClient.from_docker_image("x", Provider(url)) as sync:
        return [*seen, sync.reset().observation["count"]]


async def pending_calls(url: str) -> list[Any]:
    """Calls that nobody claimed, given to asyncio."""
    first, second, third = (GenericEnvClient(base_url=url) for _ in range(3))
    seen = [await asyncio.create_task(first.state()), *await asyncio.gather(second.state(), second.state())]
    seen.append(await asyncio.wait_for(third.state(), 5))
    for env in (first, second, third):
        await env.close()
    return [state["count"] for state in seen]


def names(url: str) -> list[Any]:
    """All that is public can be had."""
    return [each.__name__ for each in (CallToolAction, EnvClient, HTTPEnvClient, MCPToolClient, StepResult)]


ALL: list[Callable[[str], Any]] = [rollout, agent, notebook, cell_with_await, timeout, handles, pending_calls, names]
SNIPPETS = {each.__name__: each for each in ALL}

if __name__ == "__main__":
    for name in sys.argv[2:] or SNIPPETS:
        result = SNIPPETS[name](sys.argv[1])
        print(json.dumps(asyncio.run(result) if asyncio.iscoroutine(result) else result), flush=True)
