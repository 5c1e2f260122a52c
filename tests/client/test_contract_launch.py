"""The client's contract with providers that really launch: ours, and OpenEnv's own `UVProvider` in its own virtual environment.

The project that they launch is small, so that uv has little to install: an ASGI app that speaks OpenEnv's frames.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from testkit import venvs
from testkit.leftovers import marked, new_mark, wait_until_gone
from testkit.suspensions import every_await_point

from openenv_client import GenericEnvClient, Progress
from openenv_client.errors import LaunchFailed
from openenv_client.providers import CommandProvider

pytestmark = pytest.mark.real

CLIENT = Path(__file__).parents[2] / "client"
PROJECT = """
[project]
name = "count-env"
version = "0.1"
requires-python = ">=3.11"
dependencies = ["uvicorn", "websockets"]
[tool.uv]
package = false
"""
APP = """
import json


async def app(scope, receive, send):
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": b'{"status": "healthy"}'})
    elif scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        await play(receive, send)


async def play(receive, send):
    count = 0
    while (event := await receive())["type"] == "websocket.receive":
        frame = json.loads(event["text"])
        count = 0 if frame["type"] == "reset" else count + frame.get("data", {}).get("add", 0)
        state = frame["type"] == "state"
        data = {"count": count} if state else {"observation": {"count": count}, "reward": None, "done": False}
        reply = {"type": "state" if state else "observation", "data": data}
        await send({"type": "websocket.send", "text": json.dumps(reply)})
"""
THEIRS = """
import asyncio, sys
from openenv.core.containers.runtime import UVProvider
from openenv_client import GenericEnvClient


async def main():
    provider = UVProvider(project_path=sys.argv[1], host="127.0.0.1")
    async with GenericEnvClient.from_env("a/b", use_docker=False, provider=provider, env_vars={}) as env:
        print((await env.reset()).observation, (await env.step({"add": 2})).observation)
        print(env.base_url == provider.base_url)
    owned = GenericEnvClient(provider=UVProvider(project_path=sys.argv[1], host="127.0.0.1"))
    for _ in range(2):
        print((await owned.reset()).observation)
        await owned.close()
    print(owned.base_url)


asyncio.run(main())
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("count_env")
    (folder / "pyproject.toml").write_text(PROJECT)
    (folder / "server").mkdir()
    (folder / "server" / "__init__.py").touch()
    (folder / "server" / "app.py").write_text(APP)
    return folder


@pytest.fixture
def command(venv_python: Callable[[str], Path], project: Path) -> list[str]:
    """The same server without uv: quicker, for tests that start many."""
    python = str(venv_python(venvs.OPENENV_0_10))
    return [python, "-m", "uvicorn", "server.app:app", "--app-dir", str(project), "--port", "{port}", "--log-level", "warning"]


async def test_from_env_without_docker_runs_a_project_with_uv_and_leaves_nothing(project: Path) -> None:
    mark, stages = new_mark(), list[str]()

    def hear(progress: Progress) -> None:
        stages.append(progress.stage)

    handle = GenericEnvClient.from_env(
        "openenv/count", use_docker=False, project_path=str(project), env_vars=mark, context_timeout_s=120, progress=hear
    )
    async with handle as env:
        assert (await env.reset()).observation == {"count": 0}
        assert (await env.step({"add": 3})).observation == {"count": 3}
        assert marked(mark)
    assert wait_until_gone(mark, 10) == []
    assert (stages[0], stages[-1]) == ("starting", "ready")


def test_openenvs_own_uv_provider_is_a_provider_like_any_other(project: Path, venv_python: Callable[[str], Path]) -> None:
    mark = new_mark()
    python = venv_python(venvs.OPENENV_0_10)
    search = f"{Path(venvs.uv()).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [str(python), "-c", THEIRS, str(project)],
        cwd=project,
        env={**os.environ, **mark, "PATH": search, "PYTHONPATH": str(CLIENT)},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stdout.splitlines() if not line.startswith("INFO")]  # their provider passes the log on
    assert said == ["{'count': 0} {'count': 2}", "True", "{'count': 0}", "{'count': 0}", "None"]
    assert wait_until_gone(mark, 10) == []


async def test_a_start_that_dies_is_an_error_with_its_last_lines_and_leaves_nothing() -> None:
    mark = new_mark()
    provider = CommandProvider(["sh", "-c", "echo the level file is missing; exit 3"], env_vars=mark)
    with pytest.raises(LaunchFailed, match="the level file is missing"):
        await GenericEnvClient(provider=provider).connect()
    assert wait_until_gone(mark, 10) == []


async def test_a_cancellation_at_any_point_of_a_real_start_leaves_no_process(command: list[str]) -> None:
    mark = new_mark()

    async def start() -> None:
        async with GenericEnvClient(provider=CommandProvider(command, env_vars=mark)) as env:
            await env.reset()

    async for _ in every_await_point(start):
        assert await asyncio.to_thread(wait_until_gone, mark, 10) == []
    assert await asyncio.to_thread(wait_until_gone, mark, 10) == []


def test_ctrl_c_in_a_sync_start_leaves_no_process(command: list[str]) -> None:
    mark = new_mark()
    program = f"""
import _thread, sys
from openenv_client import GenericEnvClient
from openenv_client.providers import CommandProvider

def hear(progress):
    if progress.stage == "waiting until it answers":
        _thread.interrupt_main()

try:
    GenericEnvClient(provider=CommandProvider({command!r}), progress=hear).sync().connect()
except KeyboardInterrupt:
    print("interrupted")
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **mark},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == "interrupted\n", done.stderr
    assert wait_until_gone(mark, 20) == []
