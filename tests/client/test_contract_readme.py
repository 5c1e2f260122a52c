"""The examples of the client in the README are run as they are, against the demo; what it says of modes and methods holds."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from testkit.commands import serving
from testkit.leftovers import new_mark

import openenv_client
from openenv_client import EnvClient

README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
SECTION = README[README.index("### The client library") : README.index("### Options")]


def example(marker: str) -> str:
    found = re.search(rf"<!-- {marker} -->\n```python\n(.*?)```", SECTION, re.DOTALL)
    assert found is not None, f"README has no example {marker}"
    return found[1]


@pytest.fixture(scope="module")
def demo() -> Iterator[str]:
    """The base URL of a gateway that serves the demo, as the README's first command does."""
    with serving("demo", mark=new_mark()) as (_, url):
        yield url.partition("/envs/")[0].removesuffix("/mcp")


@pytest.mark.parametrize(
    ("marker", "printed"), [("client sync", "1.0 True 4\n"), ("client async", "[1.0, 0.0]\n")]
)
@pytest.mark.parametrize("mode", ["simulation", "production"])
def test_the_examples_print_what_they_should_in_either_mode(marker: str, printed: str, mode: str, demo: str) -> None:
    program = example(marker).replace("http://127.0.0.1:8700", demo)
    environment = {**os.environ, "OPENENV_CLIENT_MODE": mode}
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    assert (done.stdout, done.stderr) == (printed, "")


def test_changing_over_is_changing_the_import() -> None:
    (names,) = re.findall(r"^\+from openenv_client import (.*)$", SECTION, re.MULTILINE)
    assert set(names.split(", ")) <= set(openenv_client.__all__)
    assert f"-from openenv.core import {names}" in SECTION


def test_every_method_and_error_that_it_names_exists() -> None:
    for name in re.findall(r"^\| (`.*?) \|", SECTION, re.MULTILINE):
        for method in re.findall(r"(\w+)\(", name):
            assert callable(getattr(EnvClient, method))
    for name in re.findall(r"`((?:[A-Z][a-z]+){2,})(?:\.\w+)?`", SECTION):
        assert hasattr(openenv_client, name) or hasattr(openenv_client.errors, name) or name.endswith("Error"), name
