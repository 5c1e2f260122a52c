"""base.py: OpenEnv's own provider classes have these shapes, and ours take what theirs take."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from testkit import venvs

import openenv_client
from openenv_client.providers import (
    CommandProvider,
    ContainerProvider,
    RemoteProvider,
    ServerProvider,
    UVProvider,
    Watchable,
)

CLIENT = Path(openenv_client.__file__).parents[1]
QUESTIONS = """
import inspect, json
from openenv.core.containers.runtime import providers as theirs
from openenv.core.containers.runtime.uv_provider import UVProvider
from openenv_client.providers import ContainerProvider, ServerProvider, Watchable

def shape(made):
    return [kind.__name__ for kind in (ContainerProvider, ServerProvider, Watchable) if isinstance(made, kind)]

docker = theirs.LocalDockerProvider.__new__(theirs.LocalDockerProvider)
uv = UVProvider(project_path=".")
try:
    uv.base_url
except RuntimeError as exc:
    not_started = str(exc)
print(json.dumps({
    "docker": shape(docker),
    "uv": shape(uv),
    "not_started": not_started,
    "arguments": {name: list(inspect.signature(getattr(UVProvider, name)).parameters)
                  for name in ("__init__", "start", "wait_for_ready", "stop")},
}))
"""


@pytest.fixture(scope="module")
def theirs(venv_python: Callable[[str], Path]) -> Mapping[str, Any]:
    """What openenv's classes look like from where openenv is installed."""
    search = f"{Path(venvs.uv()).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [str(venv_python(venvs.OPENENV_0_10)), "-c", QUESTIONS],
        env={**os.environ, "PATH": search, "PYTHONPATH": str(CLIENT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    found: Mapping[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.real
def test_the_provider_classes_of_openenv_fit_unchanged(theirs: Mapping[str, Any]) -> None:
    assert theirs["docker"] == ["ContainerProvider"]
    assert theirs["uv"] == ["ServerProvider"]


@pytest.mark.real
@pytest.mark.parametrize("verb", ["__init__", "start", "wait_for_ready", "stop"])
def test_our_uv_provider_takes_what_theirs_takes(theirs: Mapping[str, Any], verb: str) -> None:
    named = set(theirs["arguments"][verb]) - {"self", "_", "workers"}  # workers is one of start's options
    assert named <= set(inspect.signature(getattr(UVProvider, verb)).parameters)


@pytest.mark.real
def test_our_uv_provider_says_what_theirs_says(theirs: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(Path(venvs.uv()).parent), prepend=":")
    with pytest.raises(RuntimeError) as caught:
        _ = UVProvider(project_path=".").base_url
    assert str(caught.value) == theirs["not_started"]


def test_what_is_launched_by_a_command_or_elsewhere_is_a_server_and_no_container() -> None:
    for provider in (CommandProvider("true"), RemoteProvider("http://127.0.0.1:1")):
        assert isinstance(provider, ServerProvider) and isinstance(provider, Watchable)
        assert not isinstance(provider, ContainerProvider)
