"""The README's compose files: they are well-formed, and what they describe can be played."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import uuid
from pathlib import Path

import pytest
import yaml
from testkit import compose, images
from testkit.commands import get, post
from testkit.containers import ROOT, docker, gateway_image, published, serves, state, wait_for

README = (ROOT / "README.md").read_text()


def blocks() -> dict[str, str]:
    """The compose files by what their marker says."""
    return dict(re.findall(r"<!-- (compose[a-z ]*) -->\n```yaml\n(.*?)```", README, re.DOTALL))


@pytest.mark.parametrize("name", list(blocks()))
def test_every_key_of_a_compose_file_is_known(name: str) -> None:
    file = yaml.safe_load(blocks()[name])
    assert set(file) <= {"services", "networks"}
    for service in file["services"].values():
        compose.arguments(service)
    assert all("image" in service or "build" in service for service in file["services"].values())


def test_a_key_that_is_not_known_is_not_passed_over() -> None:
    with pytest.raises(AssertionError, match="privileged"):
        compose.arguments({"image": "x", "privileged": True})


@pytest.mark.parametrize("name", list(blocks()))
def test_compose_itself_accepts_the_file(name: str, tmp_path: Path) -> None:
    if subprocess.run(["docker", "compose", "version"], capture_output=True, timeout=30).returncode != 0:
        assert shutil.which("docker-compose") is None
        return
    (tmp_path / "compose.yaml").write_text(blocks()[name])
    docker("compose", "--file", str(tmp_path / "compose.yaml"), "config", "--quiet")


@pytest.mark.docker
def test_the_gateway_beside_an_environments_container_is_played(docker_engine: None) -> None:
    taken = {"chess-env:latest": images.openenv(), "gateway": gateway_image()}
    with compose.up(blocks()["compose"], taken) as containers:
        wait_for(lambda: serves(containers["gateway"]), "it serves the environment", 90)
        url = f"{published(containers['gateway'])}/envs/chess/mcp?session=me"
        assert [tool["name"] for tool in post(url, "tools/list", {})["tools"]][:1] == ["reset"]
        assert post(url, "tools/call", {"name": "reset", "arguments": {"seed": 1}})["isError"] is False


@pytest.mark.docker
def test_a_gateway_with_the_engines_socket_launches_containers_and_leaves_none(docker_engine: None) -> None:
    environment = images.openenv("LABEL test=socket")  # nobody else's
    network = f"environments-{uuid.uuid4().hex[:8]}"
    text = blocks()["compose with the socket"].replace("chess-env:latest", environment)
    text = text.replace("=environments", f"={network}").replace("name: environments", f"name: {network}")
    variables = {"DOCKER_GROUP": str(os.stat("/var/run/docker.sock").st_gid)}
    ours = ("ps", "--all", "--quiet", "--filter", f"ancestor={environment}")
    with compose.up(text, {"gateway": gateway_image()}, variables) as containers:
        gateway = containers["gateway"]
        wait_for(lambda: serves(gateway), "it serves the environment", 90)
        (name,) = get(f"{published(gateway)}/ready")[1]["environments"]
        url = f"{published(gateway)}/envs/{name}/mcp?session=me"
        assert post(url, "tools/call", {"name": "reset", "arguments": {"seed": 1}})["isError"] is False
        assert docker(*ours) != ""
        docker("stop", "--time", "30", gateway)
        assert (state(gateway)["ExitCode"], docker(*ours)) == (0, ""), docker("logs", gateway)
