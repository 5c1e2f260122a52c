"""openenv_client.providers.docker, with a real engine. What every provider keeps is in test_contract."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import threading
import time
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import docker
import pytest
from docker.models.containers import Container
from testkit import images, registry
from websockets.sync.client import connect

from openenv_client import GenericEnvClient
from openenv_client.errors import LaunchFailed, LaunchTimeout, ProviderError
from openenv_client.providers import LocalDockerProvider
from openenv_client.providers.docker_owner import LABEL, this_process

pytestmark = [pytest.mark.docker, pytest.mark.usefixtures("docker_engine", "nothing_is_left")]

NO_DOCKER = "Docker is not available. Please install Docker Desktop or Docker Engine."
PARENT = """
import sys
from openenv_client.providers import LocalDockerProvider
provider = LocalDockerProvider(sys.argv[1])
print(provider.start_container(), flush=True)
sys.stdin.read()
"""


def ours() -> list[str]:
    return images.containers(f"{LABEL}={this_process().instance}")


@pytest.fixture
def nothing_is_left() -> Iterator[None]:
    """Whatever the test did, no container that this process launched is there after it."""
    yield
    assert ours() == []


@contextmanager
def started(image: str, **options: Any) -> Iterator[tuple[LocalDockerProvider, str]]:
    """A container that was started, and its base URL."""
    with LocalDockerProvider(image, stop_grace_s=1, **options) as provider:
        yield provider, provider.start_container()


def container() -> Container:
    """The one that runs."""
    [name] = ours()
    client = docker.from_env()
    try:
        return client.containers.get(name)
    finally:
        client.close()


def test_nothing_is_started_without_an_image() -> None:
    with LocalDockerProvider() as provider, pytest.raises(ValueError, match="needs an image"):
        provider.start_container()


def test_it_is_hardened_and_limited_and_reachable_from_this_machine_only() -> None:
    with started(images.plain(), memory="64m", cpus=0.5, pids=50, read_only=True) as (provider, url):
        provider.wait_for_ready(url)
        attributes = container().attrs
        host = attributes["HostConfig"]
        assert (host["Memory"], host["MemorySwap"], host["NanoCpus"], host["PidsLimit"]) == (2**26, 2**26, 5 * 10**8, 50)
        assert (host["CapDrop"], host["SecurityOpt"], host["Privileged"]) == (["ALL"], ["no-new-privileges"], False)
        assert (host["Init"], host["ReadonlyRootfs"], host["Tmpfs"], host["Binds"]) == (True, True, {"/tmp": ""}, None)
        [binding] = attributes["NetworkSettings"]["Ports"]["8000/tcp"]
        assert binding["HostIp"] == "127.0.0.1" and url == f"http://127.0.0.1:{binding['HostPort']}"
        assert "PYTHONHASHSEED=0" in attributes["Config"]["Env"]


def test_variables_of_the_image_and_of_the_caller_come_before_ours() -> None:
    image = images.built(f"FROM {images.plain()}\nENV PYTHONHASHSEED=7\n", [])
    with LocalDockerProvider(image, stop_grace_s=1, env_vars={"A": "1", "B": "2"}) as provider:
        provider.start_container(env_vars={"B": "3", "PYTHONUNBUFFERED": ""})
        found = container().attrs["Config"]["Env"]
        assert {"PYTHONHASHSEED=7", "A=1", "B=3", "PYTHONUNBUFFERED="} <= set(found)
        assert "PYTHONHASHSEED=0" not in found


@pytest.mark.parametrize("env_vars", [{"A=B": "secret"}, {"": "secret"}, {"A": "sec\0ret"}])
def test_a_variable_that_cannot_be_is_told_without_its_value(env_vars: dict[str, str]) -> None:
    with LocalDockerProvider(images.plain()) as provider, pytest.raises(ValueError, match="cannot be") as caught:
        provider.start_container(env_vars=env_vars)
    assert "sec" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"memory": "much"}, ValueError, "is no size"),
        ({"cpus": 0}, ValueError, "more than 0"),
        ({"pids": 0}, ValueError, "1 process or more"),
        ({"container_port": 0}, ValueError, "expected 1 to 65535"),
        ({"network": "none"}, ValueError, "nothing could reach"),
        ({"network": "host"}, ValueError, "every interface"),
        ({"mounts": {"/data": "here"}}, ValueError, "'here' is no absolute path"),
        ({"privileged": True}, TypeError, "no container option privileged; there are: memory, cpus"),
    ],
)
def test_options_that_no_container_can_have_are_refused_at_once(
    options: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        LocalDockerProvider("x", **options)
    with LocalDockerProvider("x") as provider, pytest.raises(error, match=words):
        provider.start_container(**options)


def test_mounts_are_read_only_unless_told(tmp_path: Path) -> None:
    (tmp_path / "word").write_text("hello")
    with started(images.plain(), mounts={"/data": str(tmp_path), "/out": f"{tmp_path}:rw"}):
        assert container().exec_run("cat /data/word").output == b"hello"
        assert container().exec_run("sh -c 'echo x > /data/new'").exit_code != 0
        assert container().exec_run("sh -c 'echo x > /out/new'").exit_code == 0
    assert (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("lines", "options"),
    [
        (["ENV PORT=9000", "EXPOSE 9000"], {}),
        (["ENV PORT=9000", "EXPOSE 8000 9000 9000/udp"], {"container_port": 9000}),
        (["EXPOSE 7000 8000"], {}),
    ],
)
def test_the_servers_port_is_the_one_told_or_the_only_one_exposed_or_8000(lines: list[str], options: dict[str, int]) -> None:
    with started(images.openenv(*lines), **options) as (provider, url):
        provider.wait_for_ready(url, 120)
        with connect(url.replace("http", "ws") + "/ws", proxy=None) as session:
            session.send(json.dumps({"type": "reset", "data": {"seed": 1}}))
            assert json.loads(session.recv(timeout=30))["type"] == "observation"


def test_a_server_on_another_port_is_told_with_the_port_that_was_asked() -> None:
    image = images.built(f"FROM {images.plain()}\nEXPOSE 5000\n", [])
    with started(image) as (provider, url):
        with pytest.raises(LaunchTimeout, match=r"It was asked on port 5000 of the container: does it listen there"):
            provider.wait_for_ready(url, 1)


def test_a_client_can_be_had_from_an_image_and_takes_its_container_with_it() -> None:
    with GenericEnvClient.from_docker_image(images.openenv(), env_vars={"MAX_SESSIONS": "2"}) as env:
        assert env.reset(seed=1).observation["value"] == 2
        assert len(ours()) == 1
    assert ours() == []


def test_on_an_internal_network_its_own_address_is_used() -> None:
    name = f"openenv-test-{uuid.uuid4().hex[:8]}"
    client = docker.from_env()
    network = client.networks.create(name, internal=True)
    try:
        with started(images.plain(), network=name) as (provider, url):
            assert url.endswith(":8000") and "127.0.0.1" not in url
            provider.wait_for_ready(url)
    finally:
        network.remove()
        client.close()


def test_a_network_that_is_not_there_is_told() -> None:
    with LocalDockerProvider(images.plain(), network="nowhere") as provider:
        with pytest.raises(LaunchFailed, match="network nowhere not found"):
            provider.start_container()


def test_a_megabyte_of_output_is_no_obstacle_and_its_end_is_kept() -> None:
    with started(images.plain("noise")) as (provider, url):
        provider.wait_for_ready(url)
        provider.stop_container()
        assert "line 19999" in provider.logs(5)


def test_a_server_that_prints_a_megabyte_and_dies_is_told_at_once_with_its_last_lines() -> None:
    with LocalDockerProvider(images.plain("noise", "die")) as provider:
        with pytest.raises(LaunchFailed, match="its container exited prematurely with code 3") as caught:
            provider.wait_for_ready(provider.start_container(), 600)
        assert caught.value.log.endswith(f"line 19999 {'x' * 40}\ncannot go on: the model file is missing")
        assert provider.poll() == 3


def test_a_server_that_runs_out_of_memory_is_told_as_that_with_its_limit() -> None:
    with LocalDockerProvider(images.plain("hungry"), memory="32m") as provider:
        with pytest.raises(LaunchFailed, match=r"it ran out of memory and was killed; .*limit of 32 MB \(option memory\)"):
            provider.wait_for_ready(provider.start_container(), 60)
        assert provider.poll() == -9


def test_an_image_whose_command_is_not_there_is_told_with_its_name() -> None:
    image = images.built(f'FROM {images.base()}\nCMD ["/no/such/thing"]\n', [])
    with LocalDockerProvider(image) as provider:
        with pytest.raises(LaunchFailed, match=r"exited prematurely with code 127") as caught:
            provider.wait_for_ready(provider.start_container())
        assert "/no/such/thing failed: No such file or directory" in caught.value.log


def test_a_container_that_the_engine_cannot_start_is_told_in_its_words() -> None:
    image = images.built(f"FROM {images.plain()}\nUSER nobody_here\n", [])
    with LocalDockerProvider(image) as provider:
        with pytest.raises(LaunchFailed, match=r"its container could not be started: .*nobody_here"):
            provider.start_container()
        assert provider.poll() == 0


def test_a_deaf_server_is_killed_after_its_grace() -> None:
    image = images.built(f"FROM {images.plain()}\nSTOPSIGNAL SIGCONT\n", [])
    with started(image) as (provider, url):
        provider.wait_for_ready(url)
        began = time.monotonic()
        provider.stop_container()
        assert 0.9 < time.monotonic() - began < 10
        assert provider.poll() == -9


def test_a_container_that_somebody_else_removes_is_seen_at_once_and_may_be_stopped() -> None:
    with started(images.plain()) as (provider, url):
        provider.wait_for_ready(url)
        container().remove(force=True)
        with pytest.raises(LaunchFailed, match="its container was removed by somebody else|exited prematurely with code 137"):
            provider.wait_for_ready(url, 60)
        assert provider.poll() == -9
        assert "serving on 8000" in provider.logs()
        provider.stop_container()


def test_a_paused_container_still_runs() -> None:
    with started(images.plain()) as (provider, url):
        provider.wait_for_ready(url)
        container().pause()
        with pytest.raises(LaunchTimeout):
            provider.wait_for_ready(url, 1)


@pytest.mark.parametrize("answers", range(1, 7))
def test_a_start_that_is_stopped_at_any_of_its_steps_leaves_nothing(answers: int) -> None:
    """Its steps are the engine's answers: the stop comes in another thread when that many have come."""
    with LocalDockerProvider(images.plain("mute"), stop_grace_s=1) as provider:
        left, stopping = itertools.count(answers - 1, -1), threading.Thread(target=provider.stop_container)

        def answered(*_: Any, **__: Any) -> None:
            if threading.current_thread() is threading.main_thread() and next(left) == 0:
                stopping.start()
                stopping.join(0.3)  # it may have to wait for this very call

        provider._client.api.hooks["response"].append(answered)
        with pytest.raises(ProviderError, match="it was stopped while it was starting"):
            provider.start_container()
        stopping.join(30)
        assert not stopping.is_alive()
        assert ours() == []


@pytest.mark.parametrize("seconds", [0, 0.05, 0.2, 0.5])
def test_a_wait_that_is_stopped_leaves_nothing(seconds: float) -> None:
    with started(images.plain("mute")) as (provider, url):
        stopping = threading.Timer(seconds, provider.stop_container)
        stopping.start()
        with pytest.raises(ProviderError, match="it was stopped while it was starting|has not been started"):
            provider.wait_for_ready(url, 60)
        stopping.join(30)
        assert not stopping.is_alive()
        assert ours() == []


def test_a_missing_image_is_told_with_what_to_do() -> None:
    with LocalDockerProvider("127.0.0.1:1/no/such:image") as provider:
        with pytest.raises(LaunchFailed, match=r"is not on this machine and cannot be pulled: .*Build it or correct its name"):
            provider.start_container()


def test_a_missing_image_is_pulled_and_the_progress_is_told() -> None:
    lines: list[str] = []
    with registry.serving() as shop:
        try:
            with LocalDockerProvider(shop.image, on_pull=lines.append) as provider:
                with pytest.raises(LaunchFailed, match="No command specified"):
                    provider.start_container()
                assert lines[-1] == f"pulling {shop.image}: 1 of 1 layers, 0 of 0 MB" == provider.logs(1)
        finally:
            subprocess.run(["docker", "rmi", shop.image], check=True, capture_output=True, timeout=60)


def test_a_pull_that_hangs_can_be_stopped() -> None:
    with registry.serving() as shop, LocalDockerProvider(shop.image) as provider:
        shop.gate.clear()
        failures: list[BaseException] = []

        def start() -> None:
            try:
                provider.start_container()
            except ProviderError as error:
                failures.append(error)

        starting = threading.Thread(target=start)
        starting.start()
        assert shop.asked.wait(30)
        assert provider.poll() is None
        provider.stop_container()
        starting.join(5)
        assert not starting.is_alive()
        assert "it was stopped while it was starting" in str(failures[0])


def test_an_engine_that_is_not_there_is_told_with_the_reason() -> None:
    code = "from openenv_client.providers import LocalDockerProvider as L\ntry: L()\nexcept RuntimeError as error: print(error)"
    told = python(code, DOCKER_HOST="unix:///nowhere/docker.sock")  # in a process of its own: the SDK leaves a socket open
    assert told.startswith(f"{NO_DOCKER} (") and "No such file or directory" in told


@pytest.mark.parametrize("how", ["leaves it behind", "is killed"])
def test_what_another_process_started_is_cleared_away(how: str) -> None:
    """At its exit, by itself; after kill -9, by the next one that starts a container. What lives is left alone."""
    command = [sys.executable, "-c", PARENT, images.plain()]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None and parent.stdin is not None
        url = parent.stdout.readline().strip()
        with started(images.plain()) as (provider, _):
            assert len(theirs(parent.pid)) == 1
            provider.stop_container()
            if how == "is killed":
                parent.kill()
            else:
                parent.stdin.close()
            parent.wait(30)
            assert len(theirs(parent.pid)) == (1 if how == "is killed" else 0)
            provider.start_container()
            assert theirs(parent.pid) == []
        with pytest.raises(OSError):
            urllib.request.urlopen(f"{url}/health", timeout=5)


def theirs(pid: int) -> list[str]:
    return images.containers(f"{LABEL}.pid={pid}")


def test_without_the_docker_package_it_is_told_how_to_get_it() -> None:
    code = "import sys; sys.modules['docker'] = None\nimport openenv_client.providers as p\ntry: p.LocalDockerProvider\n"
    told = python(code + "except ImportError as error: print(error)")
    assert told == "Docker providers need the Python package docker: pip install 'openenv-client[docker]'\n"


def python(code: str, **variables: str) -> str:
    command = [sys.executable, "-c", code]
    env = {**os.environ, **variables}
    return subprocess.run(command, env=env, check=True, capture_output=True, text=True, timeout=60).stdout
