"""The client's contract: where it can be installed, what it pulls in, how fast it is imported, how it type-checks, and that the
same snippets run on every Python."""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from testkit import interpreters, venvs
from testkit.commands import serving
from testkit.leftovers import new_mark
from testkit.script import Counting, Reply, Wire
from testkit.scripted import ScriptedServer
from testkit.threaded import ServerThread

CLIENT = Path(__file__).parents[2] / "client"
SNIPPETS = Path(__file__).with_name("snippets.py")
TIMED_OUT = "No reply to step within 0.05 s; it was sent and its outcome is unknown"
LOST = "The episode is lost: step was sent and not answered within 0.05 s, so that its outcome is unknown"
ALLOWED = {
    "openenv-client", "websockets", "httpx",
    "anyio", "certifi", "exceptiongroup", "h11", "httpcore", "idna", "sniffio", "typing-extensions",  # httpx's own
}  # fmt: skip


def run(*command: str | Path, **variables: str) -> str:
    done = subprocess.run(
        [str(each) for each in command], capture_output=True, text=True, timeout=300, env={**os.environ, **variables}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def counting() -> ScriptedServer:
    """Counts; a step that says `hold` is never answered."""
    count = Counting()

    def respond(session: int, frame: dict[str, Any]) -> Reply:
        return Wire.SILENCE if frame.get("data", {}).get("hold") else count(session, frame)

    anything = {"action": {"type": "object", "properties": {"add": {"type": "integer"}}}, "observation": {}, "state": {}}
    return ScriptedServer(respond=respond, pages={"/schema": anything})


@pytest.fixture(scope="module")
def served() -> Iterator[ServerThread]:
    with ServerThread(counting) as server:
        yield server


@pytest.fixture(scope="module")
def gateway(served: ServerThread) -> Iterator[str]:
    """The MCP URL of a gateway in front of it."""
    with serving(f"counting={served.url}", mark=new_mark()) as (_, url):
        yield url


@pytest.mark.real
@pytest.mark.parametrize(
    ("version", "needs"),
    [
        *((version, ("websockets>=15", "httpx>=0.27")) for version in interpreters.found()),
        (min(interpreters.found()), ("websockets==15.0", "httpx==0.27.0")),  # the oldest that pyproject.toml allows
    ],
)
def test_sync_async_and_notebook_code_runs_on_every_python_of_this_machine(
    version: str, needs: tuple[str, str], served: ServerThread
) -> None:
    see_the_snippets(version, needs, served.url, "simulation")


@pytest.mark.real
@pytest.mark.parametrize(
    ("version", "needs"),
    [
        (max(interpreters.found(), key=interpreters.VERSIONS.index), ("websockets>=15", "httpx>=0.27")),
        (min(interpreters.found(), key=interpreters.VERSIONS.index), ("websockets==15.0", "httpx==0.27.0")),
    ],
)
def test_the_same_code_sees_the_same_in_production_mode(version: str, needs: tuple[str, str], gateway: str) -> None:
    see_the_snippets(version, needs, gateway, "production")


def see_the_snippets(version: str, needs: tuple[str, str], url: str, mode: str) -> None:
    python = venvs.venv("client-needs", *needs, python=interpreters.found()[version])
    out = run(python, "-X", "dev", "-W", "error", SNIPPETS, url, PYTHONPATH=str(CLIENT), OPENENV_CLIENT_MODE=mode)
    assert [json.loads(line) for line in out.splitlines()] == [
        [10.0, 12.0, 12.0, 10.0] * 3,
        [0, 1, 2],
        [0, 2.0, 2],
        [0, 2.0],
        [True, TIMED_OUT, LOST, 0],
        [0, 0, 0],
        [0, 0, 0, 0],
        ["CallToolAction", "EnvClient", "HTTPEnvClient", "MCPToolClient", "StepResult"],
    ]


@pytest.mark.real
def test_installing_the_client_pulls_in_websockets_and_httpx_only(tmp_path: Path, served: ServerThread) -> None:
    run(venvs.uv(), "venv", "-q", "--python", sys.executable, tmp_path / "venv")
    python = tmp_path / "venv" / "bin" / "python"
    run(venvs.uv(), "pip", "install", "-q", "--python", python, CLIENT)
    installed = json.loads(run(venvs.uv(), "pip", "list", "-q", "--format", "json", "--python", python))
    names = {each["name"] for each in installed}
    assert names >= {"openenv-client", "websockets", "httpx"}
    assert names <= ALLOWED
    needs = run(python, "-c", "import importlib.metadata as m; print(*m.requires('openenv-client'), sep='\\n')").splitlines()
    always = [each for each in needs if "extra ==" not in each]
    assert sorted(re.split(r"[>=<;\[]", each)[0] for each in always) == ["httpx", "websockets"]
    assert json.loads(run(python, SNIPPETS, served.url, "agent")) == [0, 1, 2]


@pytest.mark.real
def test_the_client_goes_into_a_venv_with_openenv_0_10_and_changes_nothing_there(
    venv_python: Callable[[str], Path], tmp_path: Path, served: ServerThread
) -> None:
    python = venv_python(venvs.OPENENV_0_10)
    plan = subprocess.run(
        [venvs.uv(), "pip", "install", "--dry-run", "--python", str(python), str(CLIENT)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert plan.returncode == 0, plan.stderr
    assert re.findall(r"^ [+~-] ([\w-]+)", plan.stderr, re.MULTILINE) == ["openenv-client"]
    run(venvs.uv(), "pip", "install", "-q", "--python", python, "--target", tmp_path, "--no-deps", CLIENT)
    both = "import openenv.core, openenv_client; print(openenv.core.EnvClient.__module__, openenv_client.EnvClient.__module__)"
    assert run(python, "-c", both, PYTHONPATH=str(tmp_path)).split() == ["openenv.core.env_client", "openenv_client.env_client"]
    assert json.loads(run(python, SNIPPETS, served.url, "agent", PYTHONPATH=str(tmp_path))) == [0, 1, 2]


HEAVY = "websockets httpx urllib.request http.client numpy pydantic openenv_client.connection openenv_client.providers.uv"
MEASURE = """
import sys, time
began = time.process_time()
from openenv_client import EnvClient, GenericEnvClient, MCPToolClient, SyncEnvClient
took = time.process_time() - began
print(took, *(name for name in sys.argv[1:] if name in sys.modules))
"""


def test_importing_the_client_is_quick_because_it_imports_no_protocol(capsys: pytest.CaptureFixture[str]) -> None:
    runs = [run(sys.executable, "-c", MEASURE, *HEAVY.split()).split() for _ in range(5)]
    assert [found[1:] for found in runs] == [[]] * 5
    # The processor's time, because other processes may keep both cores busy; alone on the machine the clock says the same.
    took_ms = statistics.median(float(found[0]) for found in runs) * 1000
    with capsys.disabled():
        print(f"\nimporting the client takes {took_ms:.0f} ms above the interpreter's start (150 at most)", end=" ")


TYPED = '''
from dataclasses import dataclass
from typing import Any

from openenv_client import EnvClient, GenericEnvClient, StepResult, SyncEnvClient, Tool


@dataclass
class Move:
    add: int


class Game(EnvClient[Move, dict[str, Any], int]):
    def _step_payload(self, action: Move) -> dict[str, Any]:
        return {"add": action.add}

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[dict[str, Any]]:
        return StepResult(observation=payload["observation"], reward=payload["reward"], done=payload["done"])

    def _parse_state(self, payload: dict[str, Any]) -> int:
        return int(payload["count"])


def play(url: str) -> int:
    with Game(base_url=url).sync() as env:
        result = env.reset(seed=1)
        while not result.done:
            result = env.step(Move(3))
        reveal_type(result)
        tools: list[Tool] = env.list_tools()
        return env.state() + len(tools)


async def play_async(url: str) -> float | None:
    async with Game(url, message_timeout_s=5.0, headers={"a": "b"}) as env:
        reveal_type(env)
        result: StepResult[dict[str, Any]] = await env.step(Move(1), timeout_s=3.0)
        return result.reward


async def start() -> Game:
    return await Game.from_docker_image("game:1")


def start_sync() -> SyncEnvClient[Any, Any, Any]:
    return GenericEnvClient.from_env("a/b", use_docker=False).sync()
'''


def test_mypy_strict_passes_on_a_users_typed_client_and_knows_its_types(tmp_path: Path) -> None:
    (tmp_path / "game.py").write_text(TYPED)
    command = [sys.executable, "-m", "mypy", "--strict", "--python-version", "3.10", "--config-file", os.devnull, "game.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout
    revealed = [each.replace("builtins.", "") for each in re.findall('Revealed type is "(.*?)"', done.stdout)]
    assert revealed == ["openenv_client.results.StepResult[dict[str, Any]]", "game.Game"]
