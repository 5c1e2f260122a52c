"""Whether agents that just go away cost anything for good: lanes are opened, played and dropped without a word.

    .venv/bin/python tests/bench/abandon.py                                    # 500 lanes over 5 minutes, on the demo
    .venv/bin/python tests/bench/abandon.py --source docker:my-env --action '{"message": "hi"}'

Processes, containers, sockets, descriptors, threads and memory of the gateway are read when it is at rest after a few lanes,
and again at rest after all of them. Exit status 1: something did not return to where it was, or was not answered as it must be.
"""

from __future__ import annotations

import argparse
import json
import socket
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import httpx
import psutil
from testkit import cli
from testkit.containers import docker
from testkit.http_agent import HELLO, META, MODERN
from websockets.sync.client import connect

from openenv_client.providers.docker_owner import LABEL

MB: Final = 2**20
GROWTH: Final = 12 * MB
"""What the heap may have grown by: what is freed is not all given back to the system."""
SETTLES_S: Final = 60.0
CONFIG: Final = """
session_idle_s = {idle_s}
[environments.game]
source = "{source}"
max_servers = 4
sessions_per_server = 8
idle_timeout_s = {idle_s}
linger_s = {idle_s}
idle_server_s = {idle_s}
"""


class NotReturned(Exception):
    """Something is held that was not held before, or a lane was not answered as it must be."""


@dataclass(frozen=True, slots=True)
class Load:
    """`lanes` dropped evenly over `seconds`; what is unused for `idle_s` seconds may go. `action` is what a step does."""

    lanes: int = 500
    seconds: float = 300.0
    idle_s: float = 5.0
    source: str = "demo"
    action: str = '{"cell": 5}'


@dataclass(frozen=True, slots=True)
class Held:
    """What a gateway holds. `processes` are those that it has started, `memory` is in bytes."""

    processes: int
    containers: int
    sockets: int
    descriptors: int
    threads: int
    memory: int

    @classmethod
    def by(cls, pid: int, *, with_docker: bool) -> Held:
        process = psutil.Process(pid)
        listed = docker("ps", "--all", "--quiet", "--filter", f"label={LABEL}.pid={pid}").split() if with_docker else []
        return cls(
            processes=len(process.children(recursive=True)),
            containers=len(listed),
            sockets=len(process.net_connections("all")),
            descriptors=process.num_fds(),
            threads=process.num_threads(),
            memory=process.memory_info().rss,
        )

    def beyond(self, before: Held) -> dict[str, int]:
        """What there is more of than before, memory beyond GROWTH."""
        more = {name: value - getattr(before, name) for name, value in asdict(self).items()}
        return {name: value for name, value in more.items() if value > (GROWTH if name == "memory" else 0)}


def measure(load: Load) -> tuple[Held, Held, Held]:
    """What was held at rest before, in the midst (the most of each), and at rest after. Raises NotReturned."""
    with _gateway(load) as gateway:
        lanes, docked = _Lanes(gateway.base_url, json.loads(load.action)), "docker:" in load.source
        for _ in range(2 * len(lanes.ways)):
            lanes.play_one()
        before = _at_rest(gateway, docked, None)
        most = _all_of_them(lanes, load, lambda: Held.by(gateway.pid, with_docker=docked))
        return before, most, _at_rest(gateway, docked, before)


@contextmanager
def _gateway(load: Load) -> Iterator[cli.GatewayProcess]:
    with TemporaryDirectory() as folder:
        file = Path(folder, "gateway.toml")
        file.write_text(CONFIG.format(source=load.source, idle_s=load.idle_s))
        with cli.serving(config=file) as gateway:
            yield gateway


def _all_of_them(lanes: _Lanes, load: Load, look: Callable[[], Held]) -> Held:
    began, looks = time.monotonic(), [look()]
    with ThreadPoolExecutor(16) as pool:
        playing = []
        for number in range(load.lanes):
            time.sleep(max(0.0, began + number * load.seconds / load.lanes - time.monotonic()))  # the pace of the load
            playing.append(pool.submit(lanes.play_one))
            if number % 10 == 0:
                looks.append(look())
        for each in playing:
            each.result()
    return Held(*(max(values) for values in zip(*(asdict(held).values() for held in looks), strict=True)))


def _at_rest(gateway: cli.GatewayProcess, docked: bool, before: Held | None) -> Held:
    """When no server runs any more; after the load, when nothing is held that was not held before."""
    deadline = time.monotonic() + SETTLES_S
    while True:
        held = Held.by(gateway.pid, with_docker=docked)
        over = held.beyond(before) if before else {}
        if held.processes == held.containers == 0 and not over:
            return held
        if time.monotonic() > deadline:
            raise NotReturned(f"still held after {SETTLES_S:g} s: {over or held}\n{gateway.log()[-4000:]}")
        time.sleep(0.2)


class _Lanes:
    """Plays one lane after the other, each in the next of all the ways in which agents come, and drops it."""

    def __init__(self, base_url: str, action: dict[str, Any]) -> None:
        self._url, self._action = base_url, action
        self.ways = (self._session, self._name, self._handle, self._mcp_socket, self._frames, self._cookie)
        self._number = count()

    def play_one(self) -> None:
        number = next(self._number)
        way = self.ways[number % len(self.ways)]
        with httpx.Client(base_url=self._url, trust_env=False, timeout=90) as http:
            way(http, f"lane-{number}")

    def _session(self, http: httpx.Client, name: str) -> None:
        answer = http.post("/mcp", json=_rpc("initialize", HELLO))
        headers = {"mcp-session-id": answer.headers["mcp-session-id"], "mcp-protocol-version": str(HELLO["protocolVersion"])}
        for tool, arguments in (("reset", {}), ("step", self._action)):
            _checked(http.post("/mcp", json=_call(tool, arguments), headers=headers).json())

    def _name(self, http: httpx.Client, name: str) -> None:
        for tool, arguments in (("reset", {}), ("step", self._action)):
            _checked(http.post(f"/mcp?session={name}", json=_call(tool, arguments)).json())

    def _handle(self, http: httpx.Client, name: str) -> None:
        handle: dict[str, Any] = {}
        for tool, arguments in (("reset", {}), ("step", self._action)):
            message = _call(tool, {**arguments, **handle})
            message["params"]["_meta"] = META
            routing = {"mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": tool}
            answer = http.post("/mcp", json=message, headers={**routing, "accept": "application/json, text/event-stream"})
            handle = {"session_id": _checked(answer.json())["structuredContent"].get("session_id", handle.get("session_id"))}

    def _mcp_socket(self, http: httpx.Client, name: str) -> None:
        self._over_a_socket("/mcp", [_call("reset", {}), _call("step", self._action)], _checked)

    def _frames(self, http: httpx.Client, name: str) -> None:
        frames = [{"type": "reset", "data": {}}, {"type": "step", "data": self._action}]
        self._over_a_socket("/ws", frames, _observed)

    def _over_a_socket(self, path: str, messages: list[dict[str, Any]], check: Callable[[dict[str, Any]], object]) -> None:
        """And cut off, without a closing handshake, as a process that is killed does."""
        with connect(f"{self._url.replace('http', 'ws', 1)}{path}", proxy=None, close_timeout=1) as websocket:
            for message in messages:
                websocket.send(json.dumps(message))
                check(json.loads(websocket.recv(timeout=90)))
            websocket.socket.shutdown(socket.SHUT_RDWR)

    def _cookie(self, http: httpx.Client, name: str) -> None:
        for path, body in (("/reset", {}), ("/step", {"action": self._action})):
            answer = http.post(path, json=body)
            if answer.status_code != 200:
                raise NotReturned(f"{path} was answered with {answer.status_code}: {answer.text}")


def _rpc(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def _call(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return _rpc("tools/call", {"name": tool, "arguments": arguments})


def _checked(answer: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = answer.get("result", {})
    if result.get("isError", True):
        raise NotReturned(f"a call was answered with {answer}")
    return result


def _observed(frame: dict[str, Any]) -> None:
    if frame["type"] != "observation":
        raise NotReturned(f"a frame was answered with {frame}")


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    defaults = Load()
    parser.add_argument("--lanes", type=int, default=defaults.lanes)
    parser.add_argument("--seconds", type=float, default=defaults.seconds)
    parser.add_argument("--idle-s", type=float, default=defaults.idle_s, help="what is unused for so long may go")
    parser.add_argument("--source", default=defaults.source)
    parser.add_argument("--action", default=defaults.action, help="the arguments of a step, as JSON")
    load = Load(**vars(parser.parse_args()))
    print(f"{load.lanes} lanes over {load.seconds:g} s on {load.source}")
    try:
        held = dict(zip(("before", "most", "after"), measure(load), strict=True))
    except NotReturned as error:
        print(f"NOT RETURNED: {error}", file=sys.stderr)
        return 1
    for name in Held.__slots__:
        values = (f"{when} {getattr(each, name) / (MB if name == 'memory' else 1):g}" for when, each in held.items())
        print(f"{name + (' MB' if name == 'memory' else ''):<12} {', '.join(values)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
