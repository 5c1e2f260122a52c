"""openenv_client.providers.swarm, with a real Swarm of one node, which is made for these tests and left after them."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from testkit import cache, cli, images
from testkit.agents import MCP_2_AUTO, connected
from testkit.containers import wait_for
from websockets.sync.client import connect as websocket

from openenv_client.errors import LaunchFailed, LaunchTimeout, ProviderError
from openenv_client.providers import DockerSwarmProvider
from openenv_client.providers.docker_ending import Ending
from openenv_client.providers.docker_owner import LABEL, this_process
from openenv_client.providers.swarm_task import TaskState, task_state
from openenv_gateway.doctor import engine, stale
from openenv_gateway.doctor.finding import Status

PARENT = """
import sys
from openenv_client.providers import DockerSwarmProvider
print(DockerSwarmProvider(sys.argv[1]).start_container(), flush=True)
sys.stdin.read()
"""


def docker(*words: str) -> str:
    return subprocess.run(["docker", *words], check=True, capture_output=True, text=True, timeout=60).stdout.strip()


def services(label: str = f"{LABEL}={this_process().instance}") -> list[str]:
    return docker("service", "ls", "--filter", f"label={label}", "--format", "{{.Name}}").split()


@pytest.fixture(scope="module")
def swarm(docker_engine: None) -> Iterator[None]:
    """The engine manages a Swarm, which it did not before: the provider was told to make it."""
    with cache.alone("docker-swarm"):
        if docker("info", "--format", "{{.Swarm.LocalNodeState}}") == "active":
            yield
            return
        with pytest.raises(RuntimeError, match=r"is no Swarm manager\. Run `docker swarm init`.*\(its state: inactive\)"):
            DockerSwarmProvider("x")
        DockerSwarmProvider(swarm_init=True).close()
        try:
            yield
        finally:
            docker("swarm", "leave", "--force")
            docker("network", "rm", "docker_gwbridge")


@pytest.fixture
def nothing_is_left() -> Iterator[None]:
    yield
    assert services() == []
    assert images.containers("com.docker.swarm.service.name") == []


@pytest.mark.docker
@pytest.mark.usefixtures("swarm", "nothing_is_left")
def test_a_service_plays_with_its_limits_and_nothing_is_left() -> None:
    image = images.openenv("ENV PORT=9000", "EXPOSE 9000")
    with DockerSwarmProvider(image, stop_grace_s=1, memory="512m", cpus=1.5, read_only=False) as provider:
        assert provider.poll() == 0
        url = provider.start_container(env_vars={"MAX_SESSIONS": "2"})
        with pytest.raises(ProviderError, match="already running"):
            provider.start_container()
        provider.wait_for_ready(url, 120)
        assert provider.poll() is None
        with websocket(url.replace("http", "ws") + "/ws", proxy=None) as session:
            session.send(json.dumps({"type": "reset", "data": {}}))
            assert json.loads(session.recv(timeout=30))["type"] == "observation"
        [name] = services()
        spec = json.loads(docker("service", "inspect", name))[0]["Spec"]
        assert spec["TaskTemplate"]["Resources"]["Limits"] == {"NanoCPUs": 1_500_000_000, "MemoryBytes": 2**29}
        assert (spec["Mode"], spec["EndpointSpec"]["Mode"]) == ({"Replicated": {"Replicas": 1}}, "dnsrr")
        container = spec["TaskTemplate"]["ContainerSpec"]
        assert container["Init"] is True and container["CapabilityDrop"] == ["ALL"]
        assert {"PYTHONHASHSEED=0", "MAX_SESSIONS=2"} <= set(container["Env"])
        provider.stop_container()
        provider.stop_container()
        assert provider.poll() == 0
        assert "GET /health" in provider.logs()


@pytest.mark.docker
@pytest.mark.usefixtures("swarm", "nothing_is_left")
def test_a_server_that_dies_while_it_starts_is_told_with_its_last_lines_and_not_started_again() -> None:
    with DockerSwarmProvider(images.plain("die")) as provider:
        with pytest.raises(LaunchFailed, match="its container exited prematurely with code 3") as caught:
            provider.wait_for_ready(provider.start_container(), 60)
        assert caught.value.log.endswith("cannot go on: the model file is missing")
        assert provider.poll() == 3


@pytest.mark.docker
@pytest.mark.usefixtures("swarm", "nothing_is_left")
def test_an_image_that_no_node_has_is_told() -> None:
    with DockerSwarmProvider("127.0.0.1:1/no/such:image") as provider:
        with pytest.raises(LaunchFailed, match="No such image"):
            provider.start_container()


@pytest.mark.docker
@pytest.mark.usefixtures("swarm", "nothing_is_left")
@pytest.mark.parametrize("seconds", [0.1, 0.3, 0.6, 1, 2])
def test_a_start_or_wait_that_is_stopped_leaves_nothing(seconds: float) -> None:
    with DockerSwarmProvider(images.plain("mute"), stop_grace_s=1) as provider:
        stopping = threading.Timer(seconds, provider.stop_container)
        stopping.start()
        with pytest.raises(ProviderError, match="it was stopped while it was starting|has not been started"):
            provider.wait_for_ready(provider.start_container(), 60)
        stopping.join(30)
        assert not stopping.is_alive()


@pytest.mark.docker
@pytest.mark.usefixtures("swarm", "nothing_is_left")
def test_a_service_that_somebody_else_removes_is_seen() -> None:
    with DockerSwarmProvider(images.plain(), stop_grace_s=1) as provider:
        url = provider.start_container()
        provider.wait_for_ready(url)
        docker("service", "rm", *services())
        with pytest.raises((LaunchFailed, LaunchTimeout), match="removed by somebody else|did not become ready"):
            provider.wait_for_ready(url.replace("127.0.0.1", "127.0.0.2"), 10)
        assert provider.poll() is not None


@pytest.mark.docker
@pytest.mark.usefixtures("swarm", "nothing_is_left")
def test_what_a_killed_process_left_is_removed_by_the_next_one() -> None:
    command = [sys.executable, "-c", PARENT, images.plain()]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None and parent.stdout.readline().startswith("http://")
        parent.kill()
        parent.wait(30)
        theirs = f"{LABEL}.pid={parent.pid}"
        assert len(services(theirs)) == 1
        with DockerSwarmProvider(images.plain(), stop_grace_s=1) as provider:
            provider.start_container()
            assert services(theirs) == []
            provider.stop_container()


@pytest.mark.docker
@pytest.mark.usefixtures("swarm", "nothing_is_left")
def test_doctor_tells_what_a_killed_process_left_and_removes_it_when_asked() -> None:
    command = [sys.executable, "-c", PARENT, images.plain()]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None and parent.stdout.readline().startswith("http://")
        parent.kill()
        parent.wait(30)
    (name,) = services(f"{LABEL}.pid={parent.pid}")
    with engine.asked(is_needed=True) as (_, client):
        assert client is not None
        (told,) = stale.services(client, reap=False)
        assert (told.status, told.details["left"], told.remedy) == (Status.NOTE, [name], "openenv-gateway doctor --reap")
        (reaped,) = stale.services(client, reap=True)
        assert (reaped.status, reaped.details) == (Status.OK, {"removed": [name], "left": []})
    wait_for(lambda: images.containers("com.docker.swarm.service.name") == [], "its container is gone", 30)


@pytest.mark.docker
@pytest.mark.usefixtures("swarm")
@pytest.mark.parametrize(
    ("options", "error"),
    [({"pids": 5}, ValueError), ({"network": "x"}, ValueError), ({"memory": "x"}, ValueError), ({"replicas": 2}, TypeError)],
)
def test_options_that_a_service_cannot_have_are_refused(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        DockerSwarmProvider("x", **options)


@pytest.mark.docker
@pytest.mark.usefixtures("swarm")
async def test_a_gateway_serves_an_image_as_a_service_and_leaves_none() -> None:
    with cli.serving(f"counter=swarm:{images.openenv()}?memory=512m") as gateway:
        async with connected(MCP_2_AUTO, gateway.url("counter")) as agent:
            assert (await agent.play("reset", seed=3))["observation"]["value"] == 3
            assert (await agent.play("step", amount=5))["observation"]["value"] == 8
        assert len(services(f"{LABEL}.pid={gateway.pid}")) == 1
    assert services(f"{LABEL}.pid={gateway.pid}") == []


def task(state: str, created: str = "1", **status: Any) -> dict[str, Any]:
    return {"CreatedAt": created, "NodeID": "n", "Status": {"State": state, **status}}


@pytest.mark.parametrize(
    ("tasks", "state"),
    [
        ([], TaskState(waits_for="the service has no task yet")),
        ([task("pending", Err="no suitable node")], TaskState(waits_for="no suitable node")),
        ([task("starting")], TaskState(waits_for="its task is starting")),
        ([task("running", PortStatus={"Ports": [{"PublishedPort": 5}]})], TaskState("n", 5)),
        ([task("running", PortStatus={})], TaskState("n")),
        ([task("failed", ContainerStatus={"ExitCode": 3}, Err="task: non-zero exit (3)")], TaskState(ending=Ending(3))),
        ([task("rejected", Err="No such image: x")], TaskState(ending=Ending(0, error="No such image: x"))),
        ([task("complete", "2", ContainerStatus={"ExitCode": 0}), task("failed", "1")], TaskState(ending=Ending(0))),
    ],
)
def test_where_a_task_stands(tasks: list[dict[str, Any]], state: TaskState) -> None:
    assert task_state(tasks) == state
