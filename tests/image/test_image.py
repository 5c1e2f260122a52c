"""The gateway's own image: what it is, and that it serves, drains and refuses as the command does, with few rights."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from testkit.commands import get, post
from testkit.containers import HARDENED, ROOT, docker, gateway_image, published, running, serves, state, wait_for

pytestmark = pytest.mark.docker

LOOPBACK = ("--publish", "127.0.0.1::8700")
SOON = ("--health-interval", "1s")
SOCKET = "/var/run/docker.sock"
TOKEN = "7c" * 32


@pytest.fixture(scope="session")
def image(docker_engine: None) -> str:
    return gateway_image()


def test_the_image_is_small_and_its_user_is_not_root(image: str, record_property: Callable[[str, object], None]) -> None:
    found = json.loads(docker("image", "inspect", image))[0]
    record_property("gateway image", f"{found['Size'] / 10**6:.0f} MB")
    assert found["Size"] < 400 * 10**6
    assert found["Config"]["User"] == "10001:10001"
    assert found["Config"]["ExposedPorts"] == {"8700/tcp": {}}
    assert found["Config"]["Entrypoint"] == ["openenv-gateway"]


def told_by_the_readme() -> tuple[str, ...]:
    """The options of its `docker run`, on any free port, and without `--rm`, so that the end can be looked at."""
    block = re.search(r"<!-- image -->\n```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert block is not None
    build, run = block[1].splitlines()
    assert build == "docker build -t openenv-gateway ."  # which gateway_image() does, with another base and name
    words = shlex.split(run)
    assert (words[:3], words[-1]) == (["docker", "run", "--rm"], "openenv-gateway")
    return tuple(word.replace("127.0.0.1:8700:8700", "127.0.0.1::8700") for word in words[3:-1])


@pytest.mark.parametrize("options", [(*HARDENED, *LOOPBACK), told_by_the_readme()], ids=["as process 1", "as in the README"])
def test_it_serves_the_demo_read_only_becomes_healthy_and_stops_at_once(image: str, options: tuple[str, ...]) -> None:
    with running(image, options=(*options, *SOON)) as container:
        wait_for(lambda: serves(container), "the demo is served", 30)
        url = f"{published(container)}/envs/demo/mcp?session=me"
        post(url, "tools/call", {"name": "reset", "arguments": {"seed": 1}})
        for cell, done in ((2, False), (3, False), (5, False), (8, True)):
            play = post(url, "tools/call", {"name": "step", "arguments": {"cell": cell}})
            assert play["structuredContent"]["done"] is done
        users = [line.split()[0] for line in docker("top", container, "-eo", "uid,pid").splitlines()[1:]]
        assert len(users) >= 3 and set(users) == {"10001"}
        wait_for(lambda: state(container)["Health"]["Status"] == "healthy", "it is healthy", 30)
        docker("stop", "--time", "30", container)
        ended = state(container)
        assert (ended["ExitCode"], ended["Error"], ended["OOMKilled"]) == (0, "", False), docker("logs", container)


def test_the_health_check_fails_where_nothing_is_served(image: str) -> None:
    options = ("--entrypoint", "sleep", *SOON, "--health-retries", "1", "--health-start-period", "1ms")  # 0 is the image's own
    with running(image, "600", options=options) as container:
        wait_for(lambda: state(container)["Health"]["Status"] == "unhealthy", "it is unhealthy", 30)


def test_beyond_the_demo_somebody_has_to_say_who_may_call(image: str, tmp_path: Path) -> None:
    refused = subprocess.run(
        ["docker", "run", "--rm", image, "serve", "demo", "--host", "0.0.0.0"], capture_output=True, text=True, timeout=60
    )
    assert (refused.returncode, "--token-file FILE" in refused.stderr) == (2, True)
    tokens = tmp_path / "tokens"
    tokens.write_text(f"agent me {TOKEN}\n")
    os.chmod(tmp_path, 0o755)
    os.chmod(tokens, 0o644)  # the user of the image is nobody here
    options = (*HARDENED, *LOOPBACK, "--volume", f"{tokens}:/etc/openenv-gateway/tokens:ro")
    command = ("serve", "demo", "--host", "0.0.0.0", "--token-file", "/etc/openenv-gateway/tokens")
    with running(image, *command, options=options) as container:
        wait_for(lambda: serves(container), "it serves", 30)
        assert get(f"{published(container)}/health") == (200, {"status": "healthy"})
        with pytest.raises(OSError, match="401"):
            post(f"{published(container)}/mcp", "tools/list", {})


def doctor(image: str, *options: str) -> dict[str, str]:
    command = ["docker", "run", "--rm", *HARDENED, *options, image, "doctor", "--json", "--port", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    found: dict[str, str] = next(each for each in json.loads(done.stdout)["findings"] if each["check"] == "docker")
    return found


def test_the_right_to_use_the_engine_is_told_and_given_by_the_sockets_group(image: str) -> None:
    group = str(os.stat(SOCKET).st_gid)
    absent = doctor(image)
    assert absent["said"] == f"no Docker engine is there ({SOCKET} does not exist)"
    refused = doctor(image, "--volume", f"{SOCKET}:{SOCKET}")
    assert refused["said"].startswith(f"permission denied: {SOCKET} is for root and the group ")
    assert "user 10001" in refused["said"] and f"--group-add {group}" in refused["remedy"]
    allowed = doctor(image, "--volume", f"{SOCKET}:{SOCKET}", "--group-add", group)
    assert (allowed["status"], "engine " in allowed["said"]) == ("ok", True)
