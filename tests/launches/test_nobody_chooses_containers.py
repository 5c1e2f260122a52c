"""No request of any kind can influence the containers that are launched: neither image, command, variables nor mounts."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from testkit import attacks, cli, images
from testkit.containers import docker, gateway_image

CONFIG = """
[environments.game]
source = "docker:{image}"
env_vars = {{ GAME_KEY = "only the operator knows" }}
mounts = {{ "/levels" = "{folder}" }}
memory = "256m"
max_servers = 6
sessions_per_server = 1
queue_timeout_s = 5
idle_timeout_s = 0.2
linger_s = 0.2
idle_server_s = 0.1
"""
DEMO = """
EXPOSE 8000
HEALTHCHECK NONE
ENTRYPOINT ["python", "-m", "openenv_gateway.demo", "--host", "0.0.0.0", "--port", "8000"]
CMD []
LABEL test=nobody-chooses
"""


class Containers:
    """What the engine says of every container of one image, as they come and go."""

    def __init__(self, image: str) -> None:
        self._image = image
        self.seen: dict[str, Any] = {}

    def look(self) -> None:
        for each in docker("ps", "--all", "--quiet", "--no-trunc", "--filter", f"ancestor={self._image}").split():
            if each not in self.seen and (found := _inspected(each)) is not None:
                self.seen[each] = found


def _inspected(container: str) -> dict[str, Any] | None:
    """All that was asked for when it was made; None if it is gone already."""
    try:
        (found,) = json.loads(docker("inspect", container))
    except AssertionError:
        return None
    config = {key: value for key, value in found["Config"].items() if key != "Hostname"}
    whole = {key: found[key] for key in ("HostConfig", "Mounts", "Path", "Args", "Image")}
    return {"config": config, "networks": sorted(found["NetworkSettings"]["Networks"]), **whole}


@pytest.fixture(scope="module")
def game(docker_engine: None) -> str:
    return images.built(f"FROM {gateway_image()}{DEMO}", [])


@pytest.fixture(scope="module")
def gateway(game: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[cli.GatewayProcess]:
    folder = tmp_path_factory.mktemp("levels")
    file = folder / "gateway.toml"
    file.write_text(CONFIG.format(image=game, folder=folder))
    with cli.serving(config=file) as gateway:
        yield gateway
    assert docker("ps", "--all", "--quiet", "--filter", f"ancestor={game}") == ""


@pytest.mark.docker
def test_whatever_is_asked_every_container_is_made_as_the_one_before_any_request(
    gateway: cli.GatewayProcess, game: str, record_property: Callable[[str, object], None]
) -> None:
    containers, names = Containers(game), (f"lane-{number}" for number in itertools.count())
    containers.look()
    (unasked,) = containers.seen.values()
    assert "GAME_KEY=only the operator knows" in unasked["config"]["Env"]
    assert [mount["Destination"] for mount in unasked["Mounts"]] == ["/levels"]
    with httpx.Client(base_url=gateway.base_url, trust_env=False, timeout=30) as http:

        @settings(max_examples=40, suppress_health_check=list(HealthCheck))
        @given(st.lists(attacks.attacks, min_size=1, max_size=3))
        def attack(several: list[attacks.Attack]) -> None:
            for each in several:
                each(http, next(names))
                containers.look()
            assert all(found == unasked for found in containers.seen.values())

        attack()
    record_property("containers under attack", len(containers.seen))
    assert len(containers.seen) >= 4, "too few requests led to a launch: this proves little"
    assert attacks.SIGN not in json.dumps(list(containers.seen.values()))
    others = docker("ps", "--all", "--format", "{{.Image}} {{.Command}} {{.Names}}")
    assert attacks.SIGN not in others
