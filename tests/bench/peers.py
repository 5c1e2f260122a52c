"""The processes of a measurement: environment, floor, gateway. Fresh ones each time: what servers under test leave behind per
connection must not be charged to the next measurement."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from testkit import cli, servers
from tests.bench.load import Load, Plan

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
NAME = "zero"
TOKEN = "bench-0123456789-abcdefghijklmnopqrstuvwxyz"
LIMIT = 16 * 2**20
"""Bytes of a result: the gateway's default would cut a large observation, and be measured for less than it should carry."""


class LoadFailed(RuntimeError):
    """A call was not answered as it must be; the message holds what the load generator said."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What the environment sends: about `size` bytes of JSON, filled with "text" or "numbers"."""

    size: int = 1000
    fill: str = "text"

    def __str__(self) -> str:
        return f"{self.size // 1000} KB {self.fill}"


@contextmanager
def environment(observation: Observation) -> Iterator[servers.Server]:
    """The zero-cost environment, serving. Raises ServerFailed."""
    filling = ["--bytes", str(observation.size), "--fill", observation.fill]
    with servers.launch_command([sys.executable, str(HERE / "zero_cost_env.py"), *filling], ROOT) as server:
        yield server


@contextmanager
def floor(environment_url: str, loop: str) -> Iterator[servers.Server]:
    """The relay without features in front of the environment, on uvicorn's event loop `loop`. Raises ServerFailed."""
    app = ["floor:app", "--app-dir", str(HERE), "--http", "httptools", "--loop", loop, "--no-access-log", "--port", "0"]
    websocket = environment_url.replace("http://", "ws://") + "/ws"
    with servers.launch_command([sys.executable, "-m", "uvicorn", *app], ROOT, {"ENV_WS": websocket}) as server:
        yield server


@contextmanager
def gateway(environment_url: str, idle_s: float = 1800.0) -> Iterator[cli.GatewayProcess]:
    """`openenv-gateway serve` in front of the environment, for agents with TOKEN only; what is unused for `idle_s` expires.
    Raises TimeoutError with its output if it does not serve."""
    with TemporaryDirectory() as folder:
        tokens, config = Path(folder) / "tokens", Path(folder) / "gateway.toml"
        tokens.touch(mode=0o600)
        tokens.write_text(f"agent bench {TOKEN}\n")
        process = {"session_idle_s": idle_s, "token_file": str(tokens)}
        environment = {"source": environment_url, "max_result_bytes": LIMIT, "idle_timeout_s": idle_s}
        lines = [*_toml(process), f"[environments.{NAME}]", *_toml(environment)]
        config.write_text("\n".join(lines))
        with cli.started(config=config) as served:
            served.wait_until_serving()
            yield served


def _toml(table: Mapping[str, object]) -> list[str]:
    return [f"{key} = {json.dumps(value)}" for key, value in table.items()]


def load(plan: Plan) -> Load:
    """What `plan` measures, by a load generator in a process of its own. Raises LoadFailed."""
    options = [f"--{key}={value}" for key, value in asdict(plan).items() if key not in ("url", "reset") and value is not None]
    command = [sys.executable, "-m", "tests.bench.load", plan.url, *options, *(["--reset"] if plan.reset else [])]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60 + 10 * plan.seconds)
    if done.returncode != 0:
        raise LoadFailed(f"{' '.join(command[1:])} failed:\n{done.stderr[-2000:]}")
    return Load(**json.loads(done.stdout))


def has_uvloop() -> bool:
    """Whether the floor can run on uvloop here."""
    return importlib.util.find_spec("uvloop") is not None
