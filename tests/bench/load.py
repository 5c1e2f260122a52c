"""Load on one MCP Streamable HTTP URL: one agent per keep-alive connection, one call in flight each, every answer checked.

    python -m tests.bench.load URL --sessions 16 --seconds 5 --era legacy --pid PID [--reset]

Prints one line of JSON (a `Load`): what the calls cost the process PID, how many there were, how long they took.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from dataclasses import asdict, dataclass

from tests.bench.agent import VERSIONS, Agent
from tests.bench.cost import cpu_seconds, rss_bytes

WARM_UP_S = 1.0
ACTION = {"column": 3}


@dataclass(frozen=True, slots=True)
class Load:
    """One measurement. `calls` were answered in `calls_s` a second; CPU and latencies are microseconds, memory is bytes."""

    calls: int
    calls_s: float
    cpu_us: float
    p50_us: float
    p99_us: float
    rss: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure. `reset`: begin with a reset, which the modern era needs for its handle (the floor knows none)."""

    url: str
    pid: int
    sessions: int = 1
    seconds: float = 5.0
    era: str = "legacy"
    reset: bool = False
    token: str | None = None


async def measure(plan: Plan) -> Load:
    """Raises WrongAnswer for the first call that is not answered as it must be, OSError for a lost connection."""
    agents = [Agent(plan.url, plan.era, plan.token) for _ in range(plan.sessions)]
    await asyncio.gather(*[_begin(agent, plan.reset) for agent in agents])
    await _play(agents, min(WARM_UP_S, plan.seconds))
    cpu, start = cpu_seconds(plan.pid), time.perf_counter()
    latencies = sorted(await _play(agents, plan.seconds))
    wall, used = time.perf_counter() - start, cpu_seconds(plan.pid) - cpu
    rss = rss_bytes(plan.pid)
    await asyncio.gather(*[agent.close() for agent in agents])
    count = len(latencies)
    return Load(
        calls=count,
        calls_s=count / wall,
        cpu_us=used / count * 1e6,
        p50_us=latencies[count // 2] * 1e6,
        p99_us=latencies[int(count * 0.99)] * 1e6,
        rss=rss,
    )


async def _begin(agent: Agent, reset: bool) -> None:
    await agent.connect()
    await agent.initialize()
    await agent.initialized()
    if reset:
        await agent.reset()


async def _play(agents: list[Agent], seconds: float) -> list[float]:
    """The latencies of all calls that began within `seconds`; each agent makes one at least."""
    until = time.perf_counter() + seconds
    return [latency for latencies in await asyncio.gather(*[_steps(agent, until) for agent in agents]) for latency in latencies]


async def _steps(agent: Agent, until: float) -> list[float]:
    latencies: list[float] = []
    while not latencies or time.perf_counter() < until:
        start = time.perf_counter()
        await agent.call("step", ACTION)
        latencies.append(time.perf_counter() - start)
    return latencies


def _plan() -> Plan:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--pid", type=int, required=True, help="the process whose CPU time is charged (without its children)")
    parser.add_argument("--sessions", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--era", choices=VERSIONS, default="legacy")
    parser.add_argument("--reset", action="store_true", help="begin with a reset; revision 2026-07-28 needs it")
    parser.add_argument("--token", help="bearer token")
    return Plan(**vars(parser.parse_args()))


if __name__ == "__main__":
    print(json.dumps(asdict(asyncio.run(measure(_plan())))))
