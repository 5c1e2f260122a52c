"""What the gateway costs beside its calls: its start, its memory at rest, what clients leave behind, connections that idle."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import time
from dataclasses import dataclass
from statistics import median
from tempfile import TemporaryFile

from testkit.commands import GATEWAY
from tests.bench import peers
from tests.bench.agent import CLIENT, VERSIONS, Agent, WrongAnswer
from tests.bench.cost import cpu_seconds, rss_bytes
from tests.bench.peers import NAME, TOKEN, Observation

SMALL = Observation()
ANSWER_TIMEOUT_S = 60.0
SWEEP_S = 1.0
"""How often the gateway looks for what has expired."""
IDLE_S = 1.0
WARM_LANES = 20
WARM_CONNECTIONS_S = 1.0


@dataclass(frozen=True, slots=True)
class Upkeep:
    """Times are seconds, memory bytes. `stream_cpu_s` is None where the gateway offers no GET stream."""

    start_s: float
    idle_rss: int
    lanes: int
    lane_rss: float
    abandoned: int
    rss_before: int
    rss_after_first: int
    rss_after_second: int
    probes: dict[str, int]
    idle_connections: int
    idle_connections_s: float
    idle_connections_cpu_s: float
    idle_streams_cpu_s: float | None


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much of everything."""

    starts: int = 5
    lanes: int = 200
    abandoned: int = 10_000
    connections: int = 20
    idle_s: float = 3.0


def measure(sizes: Sizes) -> Upkeep:
    """Everything, each with a gateway of its own. Raises WrongAnswer, ServerFailed or TimeoutError."""
    with peers.environment(SMALL) as environment:
        idle, lane = lanes(environment.base_url, sizes.lanes)
        first, second, third, probes = abandoned(environment.base_url, sizes.abandoned, sizes.abandoned)
        connections, streams = _idle(environment.base_url, sizes.connections, sizes.idle_s)
    return Upkeep(
        start_s=start(sizes.starts)[0],
        idle_rss=idle,
        lanes=sizes.lanes,
        lane_rss=lane,
        abandoned=sizes.abandoned,
        rss_before=first,
        rss_after_first=second,
        rss_after_second=third,
        probes=probes,
        idle_connections=sizes.connections,
        idle_connections_s=sizes.idle_s,
        idle_connections_cpu_s=connections,
        idle_streams_cpu_s=streams,
    )


def start(times: int) -> tuple[float, float]:
    """From exec of `openenv-gateway stdio demo` until `initialize` is answered, by the clock and of CPU: the medians, on a warm
    disk (a first start that does not count warms it)."""
    took = [started()[:2] for _ in range(times + 1)][1:]
    return median(seconds for seconds, _ in took), median(cpu for _, cpu in took)


def started(**variables: str) -> tuple[float, float, str]:
    """One start with these environment variables: seconds, CPU seconds, and what was on stderr when the answer was there."""
    params = {"protocolVersion": VERSIONS["legacy"], "capabilities": {}, "clientInfo": CLIENT}
    hello = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}) + "\n"
    began = time.perf_counter()
    pipe, environment = subprocess.PIPE, {**os.environ, **variables}
    command = [*GATEWAY, "stdio", "demo"]
    with TemporaryFile() as said, subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=said, env=environment) as host:
        try:
            assert host.stdin is not None and host.stdout is not None
            host.stdin.write(hello.encode())
            host.stdin.flush()
            line = host.stdout.readline()
            took, cpu = time.perf_counter() - began, cpu_seconds(host.pid)
            length = said.tell()
            if "result" not in json.loads(line or b"{}"):
                raise WrongAnswer(f"initialize over stdio: {line[:300]!r}")
            host.stdin.close()
            host.wait(ANSWER_TIMEOUT_S)
        finally:
            host.kill()
        said.seek(0)
        return took, cpu, said.read(length).decode()


def lanes(environment: str, count: int) -> tuple[int, float]:
    """RSS of a gateway that nobody has called yet, and what each idle lane adds: an MCP session with its environment session,
    whose agent has reset, stepped and hung up."""
    with peers.gateway(environment) as gateway:
        idle = rss_bytes(gateway.pid)
        asyncio.run(_open_lanes(gateway.url(NAME), WARM_LANES))
        before = rss_bytes(gateway.pid)
        asyncio.run(_open_lanes(gateway.url(NAME), count))
        held = gateway.connections_to(environment)
        if held < WARM_LANES + count:
            raise WrongAnswer(f"{held} environment connections are open, not one for each of {WARM_LANES + count} lanes")
        return idle, (rss_bytes(gateway.pid) - before) / count


async def _open_lanes(url: str, count: int) -> None:
    for _ in range(count):
        agent = Agent(url, token=TOKEN)
        await agent.connect()
        await agent.initialize()
        await agent.initialized()
        await agent.reset()
        await agent.call("step", {"column": 3})
        await agent.close()


def abandoned(environment: str, count: int, again: int) -> tuple[int, int, int, dict[str, int]]:
    """RSS before, after `count` handshakes that were abandoned have expired, and after `again` more and as many GET and HEAD
    probes; with the statuses of the probes."""
    with peers.gateway(environment, IDLE_S) as gateway:
        url, base = gateway.url(NAME), gateway.base_url
        before = rss_bytes(gateway.pid)
        asyncio.run(_abandon(url, count))
        first = rss_bytes(gateway.pid)
        asyncio.run(_abandon(url, again))
        probes = asyncio.run(_probe(url, base, again))
        return before, first, rss_bytes(gateway.pid), probes


async def _abandon(url: str, count: int) -> None:
    """Handshakes without anything after them, until the last of the sessions has expired. Raises WrongAnswer if it has not."""
    agent = Agent(url, token=TOKEN)
    await agent.connect()
    for _ in range(count):
        agent.session = None
        await agent.initialize()
    await asyncio.sleep(IDLE_S + 2 * SWEEP_S)
    answer = await agent.post({"jsonrpc": "2.0", "id": 0, "method": "ping"})
    if answer.status != 404:
        raise WrongAnswer(f"a session that was idle for {IDLE_S + 2 * SWEEP_S:g} s is still there: HTTP {answer.status}")
    await agent.close()


async def _probe(url: str, base: str, count: int) -> dict[str, int]:
    """What load balancers and monitors send. Raises WrongAnswer when one of them got a session."""
    statuses: dict[str, int] = {}
    for verb, target in (("GET", f"{base}/health"), ("GET", url), ("HEAD", url), ("HEAD", f"{base}/health")):
        for _ in range(count // 4 or 1):
            agent = Agent(target, token=TOKEN)
            await agent.connect()
            answer = await agent.http(verb)
            await agent.close()
            if "mcp-session-id" in answer.headers:
                raise WrongAnswer(f"{verb} {target} made a session")
            statuses[f"{verb} {target.removeprefix(base)}"] = answer.status
    return statuses


def _idle(environment: str, count: int, seconds: float) -> tuple[float, float | None]:
    """CPU seconds within `seconds` of idle keep-alive connections with a session, and of as many idle GET streams."""
    with peers.gateway(environment) as gateway:
        return asyncio.run(_idle_cpu(gateway.url(NAME), gateway.pid, count, seconds))


async def _idle_cpu(url: str, pid: int, count: int, seconds: float) -> tuple[float, float | None]:
    agents = [Agent(url, token=TOKEN) for _ in range(count)]
    for agent in agents:
        await agent.connect()
        await agent.initialize()
        await agent.initialized()
    connections = await _cpu_within(pid, seconds)
    offered = [await agent.open_stream() for agent in agents]
    streams = await _cpu_within(pid, seconds) if all(offered) else None
    for agent in agents:
        await agent.close()
    return connections, streams


async def _cpu_within(pid: int, seconds: float) -> float:
    await asyncio.sleep(WARM_CONNECTIONS_S)  # what the last requests left to do
    before = cpu_seconds(pid)
    await asyncio.sleep(seconds)
    return cpu_seconds(pid) - before
