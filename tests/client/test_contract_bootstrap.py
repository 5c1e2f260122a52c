"""The client's contract: `from_docker_image` and `from_env`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from testkit.clients import CountingClient, ImageProvider, NeedsImage, ServerProvider
from testkit.scripted import ScriptedServer
from testkit.threaded import ServerThread

from openenv_client import Bootstrap, GenericEnvClient, Progress, SyncEnvClient
from openenv_client.providers.space import space_image

USED = "This bootstrap handle has already been resolved; call the factory again to start a new environment."


@pytest.fixture(scope="module")
def served() -> Iterator[ServerThread]:
    with ServerThread(ScriptedServer) as server:
        yield server


def handle(served: ServerThread, **fail: BaseException) -> tuple[ImageProvider, Bootstrap[CountingClient]]:
    provider = NeedsImage(served.url, fail)
    return provider, CountingClient.from_docker_image("counting:1", provider)


def test_nothing_is_started_before_the_handle_is_used(served: ServerThread) -> None:
    provider, lazy = handle(served)
    assert provider.calls == []
    assert "pending" in repr(lazy)


async def test_awaiting_a_handle_gives_a_connected_async_client(served: ServerThread) -> None:
    provider, lazy = handle(served)
    client = await lazy
    assert isinstance(client, CountingClient) and client.base_url == served.url
    assert provider.calls == [("start_container", "counting:1", {"port": None}), ("wait_for_ready", served.url)]
    assert (await client.reset()).observation.count == 0
    await client.close()
    assert provider.verbs[-1] == "stop_container"


def test_asyncio_run_takes_a_handle_and_sync_code_goes_on_with_the_client(served: ServerThread) -> None:
    provider, lazy = handle(served)
    client = asyncio.run(lazy)
    assert client.reset().observation.count == 0
    client.close()
    assert provider.running == 0


async def test_a_handle_can_be_a_task(served: ServerThread) -> None:
    client = await asyncio.create_task(handle(served)[1])
    await client.close()


def test_sync_gives_a_connected_blocking_client(served: ServerThread) -> None:
    provider, lazy = handle(served)
    client = lazy.sync()
    assert isinstance(client, SyncEnvClient)
    assert client.reset().observation.count == 0
    client.close()
    assert provider.running == 0


async def test_a_handle_is_an_async_context_manager(served: ServerThread) -> None:
    provider, lazy = handle(served)
    async with lazy as client:
        assert (await client.reset()).observation.count == 0
    assert provider.verbs[-1] == "stop_container"


def test_a_handle_is_a_context_manager(served: ServerThread) -> None:
    provider, lazy = handle(served)
    with lazy as client:
        assert client.reset().observation.count == 0
    assert provider.verbs[-1] == "stop_container"


def resolve_run(lazy: Any) -> Any:
    return asyncio.run(lazy)


def resolve_await(lazy: Any) -> Any:
    async def wait() -> Any:
        return await lazy

    return asyncio.run(wait())


WAYS: list[Callable[[Any], Any]] = [resolve_run, resolve_await, lambda lazy: lazy.sync()]


@pytest.mark.parametrize("first", WAYS)
@pytest.mark.parametrize("second", WAYS)
def test_a_handle_is_good_for_one_use(first: Callable[[Any], Any], second: Callable[[Any], Any], served: ServerThread) -> None:
    provider, lazy = handle(served)
    client = first(lazy)
    with pytest.raises(RuntimeError) as error:
        second(lazy)
    assert str(error.value) == USED
    assert provider.verbs.count("start_container") == 1
    client.close()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("verb", ["start_container", "wait_for_ready"])
def test_a_failure_of_the_start_stops_the_provider(verb: str, way: Callable[[Any], Any], served: ServerThread) -> None:
    provider, lazy = handle(served, **{verb: RuntimeError("no such image")})
    with pytest.raises(RuntimeError, match="^no such image$"):
        way(lazy)
    assert provider.verbs[-1] == "stop_container" and provider.running == 0


@pytest.mark.parametrize("way", WAYS)
def test_a_failure_to_connect_stops_the_provider(way: Callable[[Any], Any]) -> None:
    provider = NeedsImage("http://127.0.0.1:1")
    with pytest.raises(ConnectionError):
        way(GenericEnvClient.from_docker_image("x", provider))
    assert provider.verbs == ["start_container", "wait_for_ready", "stop_container"]


@pytest.mark.parametrize("way", WAYS)
def test_a_failing_constructor_stops_the_provider(
    way: Callable[[Any], Any], served: ServerThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENENV_CLIENT_MODE", "nonsense")
    provider, lazy = handle(served)
    with pytest.raises(ValueError, match="Invalid mode"):
        way(lazy)
    assert provider.verbs[-1] == "stop_container"


@pytest.mark.parametrize("verb", ["start_container", "wait_for_ready"])
async def test_a_cancellation_at_any_point_stops_the_provider(verb: str, served: ServerThread) -> None:
    provider, lazy = handle(served)
    go_on = provider.hold(verb)
    task = asyncio.create_task(lazy)
    await asyncio.to_thread(provider.entered[verb].wait, 5)
    task.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert provider.verbs[-1] == "stop_container" and provider.running == 0


async def test_arguments_of_from_docker_image_are_the_starts(served: ServerThread) -> None:
    provider = NeedsImage(served.url)
    async with GenericEnvClient.from_docker_image("a:b", provider, port=9, env_vars={"A": "1"}, gpus=2):
        pass
    assert provider.calls[0] == ("start_container", "a:b", {"port": 9, "env_vars": {"A": "1"}, "gpus": 2})


@pytest.mark.parametrize(
    ("options", "image", "started"),
    [
        ({}, "registry.hf.space/openenv-echo-env:latest", {"port": None}),
        ({"tag": "v2"}, "registry.hf.space/openenv-echo-env:v2", {"port": None}),
        (
            {"port": 9, "env_vars": {"A": "1"}, "workers": 2, "memory": "1g"},
            "registry.hf.space/openenv-echo-env:latest",
            {"port": 9, "env_vars": {"A": "1"}, "workers": 2, "memory": "1g"},
        ),
    ],
)
async def test_from_env_starts_the_spaces_image(
    options: dict[str, Any], image: str, started: dict[str, Any], served: ServerThread
) -> None:
    provider = NeedsImage(served.url)
    async with GenericEnvClient.from_env("openenv/echo_env", provider=provider, **options):
        pass
    assert provider.calls[0] == ("start_container", image, started)


@pytest.mark.parametrize(
    ("repo", "slug"), [("openenv/echo_env", "openenv-echo-env"), ("A.b/C__d", "a-b-c-d"), ("x/y0", "x-y0")]
)
def test_a_spaces_slug_is_lower_case_and_every_run_of_other_characters_is_one_dash(repo: str, slug: str) -> None:
    assert space_image(repo) == f"registry.hf.space/{slug}:latest"


async def test_from_env_without_docker_starts_a_given_provider_with_the_start_arguments(served: ServerThread) -> None:
    provider = ServerProvider(served.url)
    lazy = GenericEnvClient.from_env("a/b", use_docker=False, provider=provider, port=9, env_vars={"A": "1"}, workers=2)
    async with lazy:
        pass
    assert provider.calls[0] == ("start", {"port": 9, "env_vars": {"A": "1"}, "workers": 2})


async def test_a_providers_own_bound_holds_for_start_and_wait_together(served: ServerThread) -> None:
    class Bounded(ServerProvider):
        context_timeout_s = 45.0

    provider = Bounded(served.url)
    async with GenericEnvClient.from_env("a/b", use_docker=False, provider=provider):
        pass
    verb, waited_s = provider.calls[1]
    assert verb == "wait_for_ready" and 40 < waited_s <= 45


async def test_provider_arguments_beside_a_provider_are_refused_before_anything_starts(served: ServerThread) -> None:
    provider = ServerProvider(served.url)
    with pytest.raises(ValueError) as error:
        await GenericEnvClient.from_env("a/b", use_docker=False, provider=provider, app="x:y")
    assert str(error.value) == "provider_kwargs cannot be used when supplying a provider instance"
    assert provider.calls == []


async def test_without_docker_and_provider_uv_takes_the_spaces_repository_or_the_project_path(
    monkeypatch: pytest.MonkeyPatch, served: ServerThread
) -> None:
    made: list[dict[str, Any]] = []

    class Noted(ServerProvider):
        def __init__(self, **arguments: Any) -> None:
            super().__init__(served.url)
            made.append(arguments)

    monkeypatch.setattr("openenv_client.providers.uv.UVProvider", Noted)
    for options in ({}, {"project_path": "./mine", "app": "x:y"}):
        async with GenericEnvClient.from_env("openenv/echo_env", use_docker=False, **options):  # type: ignore[arg-type]
            pass
    assert made == [
        {"project_path": "git+https://huggingface.co/spaces/openenv/echo_env"},
        {"project_path": "./mine", "app": "x:y"},
    ]


async def test_a_provider_without_start_container_cannot_start_an_image(served: ServerThread) -> None:
    provider = ServerProvider(served.url)
    for handle in (GenericEnvClient.from_docker_image("x", provider), GenericEnvClient.from_env("a/b", provider=provider)):
        with pytest.raises(TypeError, match=r"ServerProvider cannot start an image: it has no start_container\(\)"):
            await handle
    assert provider.calls == []


async def test_when_connecting_and_stopping_fail_the_first_failure_is_raised() -> None:
    provider = NeedsImage("http://127.0.0.1:1", {"stop_container": RuntimeError("not now")})
    with pytest.raises(ConnectionError):
        await GenericEnvClient.from_docker_image("x", provider)


async def test_without_the_docker_package_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("openenv_client.providers.docker")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "docker", None)
    with pytest.raises(RuntimeError, match=r"pip install 'openenv-client\[docker\]'; or pass provider="):
        await GenericEnvClient.from_docker_image("x")


async def test_progress_is_heard_of_a_handle_too(served: ServerThread) -> None:
    reports: list[Progress] = []
    async with CountingClient.from_docker_image("x", ImageProvider(served.url), progress=reports.append):
        pass
    assert [report.stage for report in reports] == ["starting", "waiting until it answers", "ready"]
