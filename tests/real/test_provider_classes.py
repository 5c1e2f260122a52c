"""`py:` sources: OpenEnv's own provider classes, driven by the pool as ours are.

In their own virtual environment, where the pool's code runs as well: the gateway's cannot hold openenv, nor has it to.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from testkit import images, servers, venvs

ROOT = Path(__file__).parents[2]
CODE = """
import json, sys
from openenv_client.errors import ProviderError
from openenv_client.providers.ready import wait_until_healthy
from openenv_gateway.pool.sources import provider_for
from openenv_gateway.settings import Source
provider = provider_for(Source("py", **json.loads(sys.argv[1])))
try:
    url = provider.start()
    provider.wait_for_ready(120)
    wait_until_healthy(url, 5, lambda seconds: None)
    told = [url.rpartition(":")[0], provider.poll()]
    provider.stop()
    print("told", json.dumps([*told, provider.poll()]))
except ProviderError as error:
    print("told", json.dumps(str(error)))
"""


def told(source: dict[str, Any], python: Path, folder: Path) -> Any:
    """What the code says of this source, with the folder as the working directory."""
    path = os.pathsep.join(str(ROOT / each) for each in ("gateway", "client", "schemas"))
    search = os.pathsep.join([str(Path(venvs.uv()).parent), os.environ["PATH"]])
    done = subprocess.run(
        [str(python), "-c", CODE, json.dumps(source)],
        cwd=folder,
        env=servers.small_environment({"PYTHONPATH": path, "PATH": search, "UV_PYTHON_DOWNLOADS": "never"}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    [line] = [line for line in done.stdout.splitlines() if line.startswith("told ")]
    return json.loads(line.removeprefix("told "))


@pytest.fixture
def python(venv_python: Callable[[str], Path]) -> Path:
    return venv_python(venvs.OPENENV_0_10)


@pytest.mark.real
@pytest.mark.docker
@pytest.mark.usefixtures("docker_engine")
def test_one_that_starts_containers(python: Path, tmp_path: Path) -> None:
    target = "openenv.core.containers.runtime.providers:LocalDockerProvider"
    image = images.openenv()
    source = {"target": target, "start": {"image": image}, "env_vars": {"MAX_SESSIONS": "2"}}
    assert told(source, python, tmp_path) == ["http://localhost", None, 0]


@pytest.mark.real
@pytest.mark.docker
@pytest.mark.usefixtures("docker_engine")
def test_a_failure_of_theirs_is_told_without_the_variables_that_it_quotes(python: Path, tmp_path: Path) -> None:
    target = "openenv.core.containers.runtime.providers:LocalDockerProvider"
    source = {"target": target, "start": {"image": "127.0.0.1:1/no/image"}, "env_vars": {"TOKEN": "swordfish-0451"}}
    message = told(source, python, tmp_path)
    assert message.startswith("RuntimeError: Failed to start Docker container.")
    assert "-e TOKEN=${TOKEN} 127.0.0.1:1/no/image" in message and "swordfish" not in message


@pytest.mark.real
def test_one_that_starts_processes(python: Path, tmp_path: Path) -> None:
    project = servers.generate(tmp_path)
    target = "openenv.core.containers.runtime.uv_provider:UVProvider"
    source = {"target": target, "arguments": {"project_path": str(project)}}
    assert told(source, python, project) == ["http://127.0.0.1", None, 0]
