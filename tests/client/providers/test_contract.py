"""The contract that every provider keeps, checked with real OpenEnv servers.

A provider that launches is marked by the variable of `testkit.leftovers`, so "nothing is left" means no process anywhere.
"""

from __future__ import annotations

import json
import shlex
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from testkit import images, leftovers, servers, venvs
from testkit.recipes import ContainerServer, Provider, Recipe
from websockets.sync.client import connect

from openenv_client.errors import LaunchFailed, LaunchTimeout, ProviderError
from openenv_client.providers import CommandProvider, RemoteProvider, UVProvider

READY_S = 120.0
PARENT = """
import json, sys
from openenv_client.providers import CommandProvider, UVProvider
kind, arguments, env_vars, wait = json.loads(sys.argv[1])
provider = {"CommandProvider": CommandProvider, "UVProvider": UVProvider}[kind](**arguments)
url = provider.start(env_vars=env_vars)
if wait:
    provider.wait_for_ready(120)
print(url, flush=True)
provider.wait_for_ready(600)
sys.stdin.read()
"""


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory, venv_python: Callable[[str], Path]) -> Path:
    """A project as `openenv init` makes it, in a git repository, on the openenv that the suite uses."""
    venv_python(venvs.OPENENV_0_10)
    folder = servers.generate(tmp_path_factory.mktemp("projects"))
    git = ["git", "-C", str(folder.parent), "-c", "user.name=test", "-c", "user.email=test@example.com"]
    for arguments in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "the project"], ["tag", "v1"]):
        subprocess.run(git + arguments, check=True, timeout=60)
    return folder


@pytest.fixture
def tools(venv_python: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """What real servers are launched with."""
    venv_python(venvs.OPENENV_0_10)
    monkeypatch.setenv("PATH", str(Path(venvs.uv()).parent), prepend=":")
    monkeypatch.setenv("UV_PYTHON_DOWNLOADS", "never")


@pytest.fixture(params=["command", "uv"])
def process(request: pytest.FixtureRequest) -> Recipe:
    """Each provider whose server is a process of ours, in its plainest form."""
    return plainest(request)


@pytest.fixture(params=["command", "uv", pytest.param("docker", marks=pytest.mark.docker)])
def recipe(request: pytest.FixtureRequest) -> Recipe:
    """Each provider that launches, in its plainest form."""
    return plainest(request)


def plainest(request: pytest.FixtureRequest) -> Recipe:
    if request.param == "docker":
        request.getfixturevalue("docker_engine")
        broken = {"env_vars": {"ENVIRONMENT": "no_such_environment"}}
        return Recipe(ContainerServer, {"image": images.openenv(), "stop_grace_s": 1}, broken)
    request.getfixturevalue("tools")
    if request.param == "command":
        command = servers.command("counter")
        return Recipe(CommandProvider, {"command": command}, {"command": servers.command("no_such_environment")})
    return Recipe(UVProvider, {"project_path": str(request.getfixturevalue("project"))}, {"app": "server.gone:app"})


@pytest.fixture(params=["a pipeline", "app from the parent folder", "git"])
def form(request: pytest.FixtureRequest, tools: None, project: Path) -> Recipe:
    """The other forms in which they can be told what to launch."""
    if request.param == "a pipeline":
        line = shlex.join(servers.command("counter")).replace("'{port}'", "$PORT")
        return Recipe(CommandProvider, {"command": f"{line} 2>&1 | cat"})
    if request.param == "git":
        return Recipe(UVProvider, {"project_path": f"git+file://{project.parent}@v1#subdirectory={project.name}"})
    return Recipe(UVProvider, {"project_path": str(project), "app": f"{project.name}.server.app:app"})


@pytest.fixture
def mark() -> Iterator[dict[str, str]]:
    """The mark to launch with. Whatever the test did, nothing marked runs after it."""
    made = leftovers.new_mark()
    yield made
    assert leftovers.marked(made) == []


def reset(base_url: str) -> Mapping[str, object]:
    """The data of the first reply on a session of its own."""
    with connect(base_url.replace("http://", "ws://") + "/ws", open_timeout=10, close_timeout=1, proxy=None) as session:
        session.send(json.dumps({"type": "reset", "data": {}}))
        reply = json.loads(session.recv(timeout=30))
    assert reply["type"] == "observation"
    data = reply["data"]
    assert isinstance(data, dict)
    return data


@contextmanager
def stopping(provider: Provider) -> Iterator[Provider]:
    try:
        yield provider
    finally:
        provider.stop()


@contextmanager
def listener() -> Iterator[int]:
    """The port of somebody else's server."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server.getsockname()[1]


def is_gone(base_url: str, mark: Mapping[str, str]) -> bool:
    return not leftovers.listens(base_url) and leftovers.marked(dict(mark)) == []


@pytest.mark.real
def test_ready_means_that_it_plays_and_stopped_means_that_nothing_is_left(recipe: Recipe, mark: dict[str, str]) -> None:
    with stopping(recipe.make()) as provider:
        assert provider.poll() == 0
        base_url = provider.start(env_vars=mark)
        assert provider.poll() is None
        provider.wait_for_ready(READY_S)
        assert reset(base_url)["done"] is False
        assert provider.poll() is None
        assert "GET /health" in provider.logs()
        provider.stop()
        assert is_gone(base_url, mark)
        assert isinstance(provider.poll(), int)
        provider.stop()
        assert "GET /health" in provider.logs()


@pytest.mark.real
def test_every_form_of_launch_plays_and_leaves_neither_processes_nor_files(
    form: Recipe, mark: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with stopping(form.make()) as provider:
        base_url = provider.start(env_vars=mark)
        provider.wait_for_ready(READY_S)
        assert reset(base_url)["done"] is False
        provider.stop()
        assert is_gone(base_url, mark)
        assert list(tmp_path.iterdir()) == []


@pytest.mark.real
def test_a_provider_can_be_started_again_but_not_twice_at_once(recipe: Recipe, mark: dict[str, str]) -> None:
    with stopping(recipe.make()) as provider:
        provider.start(env_vars=mark)
        with pytest.raises(ProviderError, match="is already running"):
            provider.start(env_vars=mark)
        provider.stop()
        base_url = provider.start(env_vars=mark)
        provider.wait_for_ready(READY_S)
        assert reset(base_url)["done"] is False


@pytest.mark.real
def test_a_server_that_dies_while_it_starts_is_told_at_once_with_its_last_lines(
    recipe: Recipe, mark: dict[str, str]
) -> None:
    with stopping(recipe.make_broken()) as provider:
        base_url = provider.start(env_vars=mark)
        with pytest.raises(LaunchFailed, match=r"exited prematurely with code \d+") as caught:
            provider.wait_for_ready(600)
        assert "Could not import module" in caught.value.log
        assert caught.value.log in provider.logs()
        assert provider.poll() not in (None, 0)
        assert is_gone(base_url, mark)


@pytest.mark.real
def test_a_start_that_is_cancelled_ends_promptly_and_leaves_nothing(recipe: Recipe, mark: dict[str, str]) -> None:
    with stopping(recipe.make()) as provider:
        base_url = provider.start(env_vars=mark)
        failures: list[BaseException] = []

        def wait() -> None:
            try:
                provider.wait_for_ready(600)
            except RuntimeError as exc:
                failures.append(exc)

        waiting = threading.Thread(target=wait)
        waiting.start()
        provider.stop()
        waiting.join(5)
        assert not waiting.is_alive()
        assert len(failures) == 1 and isinstance(failures[0], ProviderError)
        assert is_gone(base_url, mark)


@pytest.mark.real
def test_a_start_that_takes_too_long_leaves_nothing(recipe: Recipe, mark: dict[str, str]) -> None:
    with stopping(recipe.make()) as provider:
        base_url = provider.start(env_vars=mark)
        with pytest.raises(LaunchTimeout, match=r"did not become ready within 0\.1 seconds") as caught:
            provider.wait_for_ready(0.1)
        assert isinstance(caught.value, TimeoutError) and isinstance(caught.value, RuntimeError)
        assert is_gone(base_url, mark)
        with pytest.raises(RuntimeError, match="has not been started"):
            provider.wait_for_ready(0.1)


@pytest.mark.real
def test_a_port_that_is_in_use_is_told_and_nothing_is_launched(recipe: Recipe, mark: dict[str, str]) -> None:
    with listener() as port, stopping(recipe.make()) as provider:
        with pytest.raises(ProviderError, match=f"Port {port} on 127.0.0.1 is in use"):
            provider.start(port=port, env_vars=mark)
        assert provider.poll() == 0


@pytest.mark.real
@pytest.mark.parametrize("when", ["ready", "starting"])
def test_after_kill_9_of_its_parent_nothing_is_left_within_five_seconds(
    process: Recipe, mark: dict[str, str], when: str
) -> None:
    arguments = [sys.executable, "-c", PARENT, process.as_json(mark, wait=when == "ready")]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        base_url = parent.stdout.readline().strip()
        if when == "ready":
            assert reset(base_url)["done"] is False
        assert len(leftovers.marked(mark)) >= 2
        parent.kill()
        parent.wait(5)
        assert leftovers.wait_until_gone(mark, 5) == []
        assert not leftovers.listens(base_url)


@pytest.mark.parametrize("words", [["noise"], ["noise", "deaf", "child"]])
def test_a_server_that_prints_a_megabyte_becomes_ready_all_the_same(mark: dict[str, str], words: Sequence[str]) -> None:
    with stopping(plain(*words, stop_grace_s=0.3)) as provider:
        base_url = provider.start(env_vars=mark)
        provider.wait_for_ready(30)
        assert "line 19999" in provider.logs(5)
        provider.stop()
        assert is_gone(base_url, mark)


def test_a_server_that_prints_a_megabyte_and_dies_is_told_at_once(mark: dict[str, str]) -> None:
    with stopping(plain("noise", "die")) as provider:
        provider.start(env_vars=mark)
        began = time.monotonic()
        with pytest.raises(LaunchFailed, match="exited prematurely with code 3") as caught:
            provider.wait_for_ready(600)
        assert time.monotonic() - began < 10
        assert caught.value.log.endswith(f"line 19999 {'x' * 40}\ncannot go on: the model file is missing")
        assert provider.poll() == 3


def test_a_server_that_never_listens_can_be_stopped_while_it_is_waited_for(mark: dict[str, str]) -> None:
    with stopping(plain("mute")) as provider:
        provider.start(env_vars=mark)
        threading.Timer(0.2, provider.stop).start()
        with pytest.raises(LaunchFailed, match="it was stopped while it was starting"):
            provider.wait_for_ready(600)


def test_a_server_whose_health_is_bad_is_told_with_its_answer(mark: dict[str, str]) -> None:
    with stopping(plain("sick")) as provider:
        provider.start(env_vars=mark)
        with pytest.raises(LaunchTimeout, match="last answer of /health: HTTP 503") as caught:
            provider.wait_for_ready(2)
        assert "serving on" in caught.value.log


def test_the_port_that_is_asked_for_is_the_port_that_is_used(mark: dict[str, str]) -> None:
    with listener() as port:
        pass
    with stopping(plain()) as provider:
        assert provider.start(port=port, env_vars=mark) == f"http://127.0.0.1:{port}"
        provider.wait_for_ready(30)


@pytest.mark.real
def test_a_remote_server_is_used_and_left_running(venv_python: Callable[[str], Path]) -> None:
    venv_python(venvs.OPENENV_0_10)
    with servers.launch("counter") as server, stopping(RemoteProvider(server.base_url + "/")) as provider:
        assert provider.poll() == 0
        assert provider.start() == server.base_url
        provider.wait_for_ready(10)
        assert provider.poll() is None
        assert reset(server.base_url)["done"] is False
        provider.stop()
        provider.stop()
        assert provider.poll() == 0
        assert server.poll() is None and leftovers.listens(server.base_url)


def test_waiting_for_a_remote_server_can_be_cancelled() -> None:
    with stopping(RemoteProvider("http://127.0.0.1:1")) as provider:
        provider.start()
        threading.Timer(0.1, provider.stop).start()
        with pytest.raises(LaunchFailed, match="it was stopped while it was waited for"):
            provider.wait_for_ready(600)


def plain(*words: str, stop_grace_s: float = 5.0) -> CommandProvider:
    script = str(Path(__file__).with_name("plain_server.py"))
    return CommandProvider([sys.executable, script, "{port}", *words], stop_grace_s=stop_grace_s)
