"""Clients that nobody here wrote play through a gateway, each as its users have it: whole games, pictures, calls given up.

The clients are scripts in `clients/`; `play.py` and `play.mjs` say what each does and prints.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from testkit import cache, cli, node, servers, venvs
from testkit.witness import Watched, watching

pytestmark = pytest.mark.real

SCRIPTS: Final = Path(__file__).parent / "clients"
LIMIT_S: Final = 90.0
SEED, CELLS = 1, (2, 3, 5, 8)
EPISODE: Final[dict[str, Any]] = {
    "tools": ["reset", "step", "state"],
    "turns": [[0.0, False], [0.0, False], [0.0, False], [0.0, False], [1.0, True]],
    "board": "OXX.X.OXO",
    "pictures": ["image/png"] * 5,
}
"""What every client sees of the demo's game with this seed and these moves: its reset and four steps."""


@dataclass(frozen=True)
class Client:
    """A script and what runs it. `kept`: the name of its packages in testkit.venvs or testkit.node."""

    script: str
    kept: str
    revision: str
    handle: str = "required"
    named: bool = False

    @property
    def name(self) -> str:
        return f"{self.kept}-{self.script}-{'named' if self.named else self.handle}"


CLIENTS: Final = (
    Client("sdk1.mjs", node.CLIENTS, "2025-11-25"),
    Client("client2.mjs", node.CLIENTS, "2026-07-28"),
    Client("fastmcp4.py", venvs.FASTMCP, "2026-07-28"),
    Client("openai_agents.py", venvs.OPENAI_AGENTS, "2026-07-28"),
    Client("pydantic_toolset.py", venvs.PYDANTIC_AI, "2026-07-28"),
    # A session per call: the episode is named by the URL, or by the handle that every call passes back.
    Client("langchain_adapters.py", venvs.LANGCHAIN, "2025-11-25", named=True),
    Client("langchain_adapters.py", venvs.LANGCHAIN, "2025-11-25", handle="always"),
)


@dataclass(frozen=True)
class Fronts:
    """The demo behind a witness, which judges every message; a slow one without, since it passes on no hang-up."""

    demo: Watched
    slow: cli.GatewayProcess


@pytest.fixture(scope="module")
def slow(venv_python: Callable[[str], Path]) -> Iterator[cli.GatewayProcess]:
    venv_python(venvs.OPENENV_0_10)
    with servers.launch("toolbox", env={"MAX_SESSIONS": "32"}) as toolbox, cli.serving(f"toolbox={toolbox.base_url}") as slow:
        yield slow


@pytest.fixture(scope="module")
def fronts(slow: cli.GatewayProcess) -> Iterator[Fronts]:
    with watching("demo") as demo:
        yield Fronts(demo, slow)


@pytest.fixture
def program(venv_python: Callable[[str], Path], node_modules: Callable[[str], Path]) -> Callable[[Client], list[str]]:
    """`program(client)`: the command that runs its script; skips as the two fixtures do."""

    def command(client: Client) -> list[str]:
        if client.script.endswith(".mjs"):
            node_modules(client.kept)
            return [str(node.node()), str(SCRIPTS / client.script)]
        return [str(venv_python(client.kept)), str(SCRIPTS / client.script)]

    return command


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_a_client_plays_an_episode_sees_its_pictures_and_loses_nothing_when_it_gives_up_a_call(
    client: Client, fronts: Fronts, program: Callable[[Client], list[str]]
) -> None:
    before = fronts.demo.witness.seen[client.revision, "tools/call"]
    seen = run([*program(client), json.dumps(target(client, fronts))])
    interruption = seen.pop("interruption")
    assert seen == EPISODE
    assert fronts.demo.witness.seen[client.revision, "tools/call"] - before == 6, "all in the revision that this client speaks"
    assert interruption["gave_up"] == "timed out"
    (late,) = [told for told in interruption["told"] if told != "timed out"]
    assert late.startswith("PREVIOUS_ACTION_LATE: ") and '"result":"waited 2 s"' in late
    assert interruption["notes"] == {"result": ["after"]}, "its later call was carried out once, in the same session"
    assert interruption["steps"] == 2, "and so was the one that it gave up"


def target(client: Client, fronts: Fronts) -> dict[str, Any]:
    query = f"?session={client.script}" if client.named else ""
    return {
        "modules": str(node.modules(client.kept)) if client.script.endswith(".mjs") else None,
        "demo": fronts.demo.url("demo") + query,
        "slow": fronts.slow.url("toolbox") + query,
        "seed": SEED,
        "cells": CELLS,
        "handle": client.handle,
    }


SLOW_PLAYERS: Final = (
    Client("langchain_adapters.py", venvs.LANGCHAIN, "2025-11-25", handle="always"),
    Client("openai_agents.py", venvs.OPENAI_AGENTS, "2026-07-28"),
    Client("pydantic_toolset.py", venvs.PYDANTIC_AI, "2026-07-28"),
)


@pytest.fixture(scope="module")
def slow_episodes(slow: cli.GatewayProcess, venv_python: Callable[[str], Path]) -> Mapping[str, dict[str, Any]]:
    """What each of SLOW_PLAYERS saw, all playing at the same time, each with its own limits."""

    def play(client: Client) -> dict[str, Any]:
        target = {"slow": slow.url("toolbox"), "player": client.kept, "handle": client.handle}
        return run([str(venv_python(client.kept)), str(SCRIPTS / client.script), json.dumps(target)])

    with ThreadPoolExecutor(len(SLOW_PLAYERS)) as players:
        return dict(zip((client.kept for client in SLOW_PLAYERS), players.map(play, SLOW_PLAYERS), strict=True))


@pytest.mark.parametrize("client", SLOW_PLAYERS, ids=lambda client: client.kept)
def test_an_episode_with_slow_steps_is_played_on_ones_own_board_each_action_once_and_nothing_lost(
    client: Client, slow_episodes: Mapping[str, dict[str, Any]]
) -> None:
    """Steps of 0.1 s and one of 8 s, which openai-agents gives up after its 5 s."""
    seen = slow_episodes[client.kept]
    assert seen["notes"] == [f"{client.kept} {number}" for number in range(4)], "one's own notes, each once, in their order"
    assert seen["steps"] == 4 + 4 + 1, "the waits, the notes and the end, each carried out once"
    assert seen["done"] is True
    if client.kept == venvs.OPENAI_AGENTS:
        gave_up, late = seen["missed"]
        assert gave_up == "timed out"
        assert late.startswith("PREVIOUS_ACTION_LATE: ") and '"result":"waited 8 s"' in late
    else:
        assert seen["missed"] == []


@pytest.mark.parametrize(("era", "revision"), [("legacy", "2025-11-25"), ("modern", "2026-07-28")])
def test_the_inspector_plays_an_episode_one_process_per_call(
    era: str, revision: str, fronts: Fronts, node_modules: Callable[[str], Path]
) -> None:
    """It has no way of giving up a call."""
    node_modules(node.INSPECTOR)
    inspect = Inspector(fronts.demo.url("demo", session=f"inspector-{era}"), era)
    before = fronts.demo.witness.seen[revision, "tools/call"]
    turns = [inspect.call("reset", seed=SEED), *[inspect.call("step", cell=cell) for cell in CELLS]]
    state = inspect.call("state")["structuredContent"]["state"]
    assert {
        "tools": [tool["name"] for tool in inspect.result("--method", "tools/list")["tools"]],
        "turns": [[turn["structuredContent"]["reward"], turn["structuredContent"]["done"]] for turn in turns],
        "board": state["board"],
        "pictures": [block["mimeType"] for turn in turns for block in turn["content"] if block["type"] == "image"],
    } == EPISODE
    assert fronts.demo.witness.seen[revision, "tools/call"] - before == 6


@dataclass(frozen=True)
class Inspector:
    """The Inspector's command line, on one URL."""

    url: str
    era: str

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return self.result("--method", "tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments))

    def result(self, *options: str) -> dict[str, Any]:
        base = [str(node.node()), str(node.inspector()), "--cli", self.url, "--transport", "http", "--protocol-era", self.era]
        result: dict[str, Any] = run([*base, "--format", "json", *options])["result"]
        return result


def run(command: Sequence[str]) -> dict[str, Any]:
    """The JSON line that a program prints on stdout."""
    bytecode = {"PYTHONPYCACHEPREFIX": str(cache.folder() / "bytecode")}
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, env={**os.environ, **bytecode})
    printed = f"{done.stdout[-1000:]}{done.stderr[-4000:]}"
    assert done.returncode == 0, f"{' '.join(command)} ended with {done.returncode}:\n{printed}"
    seen: dict[str, Any] = json.loads(done.stdout)
    return seen
