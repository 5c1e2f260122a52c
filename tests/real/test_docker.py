"""Environments as images: an official MCP client plays them through a gateway that launches their containers."""

from __future__ import annotations

import asyncio
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from testkit import cli, images
from testkit.agents import MCP_2_AUTO, connected

pytestmark = [pytest.mark.docker, pytest.mark.usefixtures("docker_engine")]

SECRET = "swordfish-0451"
GAME = [3, 8, 13]


def containers_of(gateway: cli.GatewayProcess) -> list[str]:
    """Those that it launched."""
    return images.containers(f"openenv-gateway.owner.pid={gateway.pid}")


@pytest.fixture(scope="module")
def image() -> str:
    """Its server listens on the port that it exposes, which is not 8000."""
    return images.openenv("ENV MAX_SESSIONS=4 PORT=9000", "EXPOSE 9000")


@pytest.fixture
def space(image: str) -> Iterator[str]:
    """A Space whose image the engine has already."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    tag = f"registry.hf.space/openenv-{name}:latest"
    subprocess.run(["docker", "tag", image, tag], check=True, timeout=60)
    yield f"openenv/{name}"
    subprocess.run(["docker", "rmi", tag], check=True, capture_output=True, timeout=60)


async def play(url: str) -> list[int]:
    """A whole game of counter: its value after each call."""
    async with connected(MCP_2_AUTO, url) as agent:
        results = [await agent.play("reset", seed=3, target=12)]
        while not results[-1]["done"]:
            results.append(await agent.play("step", amount=5))
        return [result["observation"]["value"] for result in results]


async def until_none_of(gateway: cli.GatewayProcess) -> None:
    async with asyncio.timeout(30):
        while containers_of(gateway):  # noqa: ASYNC110  (only the engine can be asked)
            await asyncio.sleep(0.05)


async def test_two_games_are_played_in_one_container_and_nothing_is_left(image: str) -> None:
    with cli.serving(f"counter=docker:{image}?memory=512m&pids=64&read_only=true") as gateway:
        url = gateway.url("counter")
        assert [*await asyncio.gather(play(url), play(url))] == [GAME, GAME]
        assert len(containers_of(gateway)) == 1
    assert containers_of(gateway) == []


async def test_after_kill_9_the_next_gateway_clears_away_what_was_left_and_nothing_else(image: str) -> None:
    with cli.started(f"counter=docker:{image}") as killed, cli.serving(f"counter=docker:{image}") as living:
        killed.wait_until_serving()
        killed.kill()
        assert len(containers_of(killed)) == len(containers_of(living)) == 1
        with cli.serving(f"counter=docker:{image}"):
            await until_none_of(killed)
            assert await play(living.url("counter")) == GAME


async def test_a_space_is_launched_from_its_image(space: str) -> None:
    with cli.serving(f"counter=hf:{space}") as gateway:
        assert await play(gateway.url("counter")) == GAME
    assert containers_of(gateway) == []


def test_an_image_that_is_nowhere_is_told_and_nothing_is_served() -> None:
    with cli.started("docker:127.0.0.1:1/no/such:image") as gateway:
        assert gateway.wait(60) == 1
        assert "the image is not on this machine and cannot be pulled" in gateway.wait_for_output("docker login")
    assert containers_of(gateway) == []


def test_variables_from_the_configuration_are_in_no_log_and_no_error(tmp_path: Path) -> None:
    code = "import os, sys; print('got', os.environ['TOKEN'], flush=True); sys.exit(3)"
    image = images.built(f'FROM {images.base()}\nCMD ["python3", "-c", "{code}"]\n', [])
    file = tmp_path / "gateway.toml"
    file.write_text(f'[environments.chatty]\nsource = "docker:{image}"\nenv_vars = {{ TOKEN = "{SECRET}" }}\n')
    with cli.started(config=file) as gateway:
        assert gateway.wait(60) == 1
        log = gateway.wait_for_output("exited prematurely with code 3")
    assert "got ${TOKEN}" in log and SECRET not in log
