"""The client's contract: providers that belong to a client, of both families, and what becomes of them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from testkit.clients import FAMILIES, CountingClient, ImageProvider, NeedsImage, Recorded, ServerProvider
from testkit.scripted import ScriptedServer

from openenv_client import GenericEnvClient, Progress
from openenv_client.errors import EpisodeLost

PENDING = (
    "Provider cleanup is pending for this client with an existing base URL. Retry close() to finish cleanup, "
    "then create a new client instead of reconnecting to the old URL."
)
both_families = pytest.mark.parametrize("family", FAMILIES)
START = {ServerProvider: ["start", "wait_for_ready"], ImageProvider: ["start_container", "wait_for_ready"]}
STOP = {ServerProvider: ["stop"], ImageProvider: ["stop_container"]}


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer() as running:
        yield running


@both_families
async def test_an_owned_provider_is_started_at_connect_and_stopped_at_close(family: Any, server: ScriptedServer) -> None:
    provider = family(server.url)
    client = CountingClient(provider=provider)
    assert provider.verbs == []
    await client.reset()
    assert provider.verbs == START[family]
    await client.close()
    assert provider.verbs == START[family] + STOP[family]


@both_families
async def test_a_closed_client_that_is_used_again_starts_its_provider_again(family: Any, server: ScriptedServer) -> None:
    provider = family(server.url)
    client = CountingClient(provider=provider)
    for _ in range(2):
        await client.reset()
        await client.close()
    assert provider.verbs == (START[family] + STOP[family]) * 2


async def test_close_stops_a_provider_once(server: ScriptedServer) -> None:
    provider = ServerProvider(server.url)
    client = CountingClient(provider=provider)
    await client.connect()
    await client.close()
    await client.close()
    assert provider.verbs == ["start", "wait_for_ready", "stop"]


async def test_a_provider_given_with_a_url_runs_already_and_is_stopped_at_close(server: ScriptedServer) -> None:
    provider = ServerProvider(server.url)
    async with CountingClient(server.url, provider=provider) as client:
        assert provider.verbs == []
        assert client.base_url == server.url
    assert provider.verbs == ["stop"]
    assert client.base_url == server.url


async def test_wait_for_ready_gets_the_url_or_nothing_as_its_family_has_it(server: ScriptedServer) -> None:
    image, process = ImageProvider(server.url), ServerProvider(server.url)
    for provider in (image, process):
        async with CountingClient(provider=provider):
            pass
    assert image.calls[:2] == [("start_container", None, {"port": None}), ("wait_for_ready", server.url)]
    assert process.calls[:2] == [("start", {"port": None, "env_vars": None}), ("wait_for_ready", 30.0)]


async def test_a_provider_whose_start_needs_an_image_cannot_be_owned() -> None:
    provider = NeedsImage("http://127.0.0.1:1")
    with pytest.raises(ValueError) as error:
        await GenericEnvClient(provider=provider).connect()
    assert str(error.value) == (
        "NeedsImage does not support provider-owned startup because start_container() requires image. "
        "Start the provider manually and pass base_url, or configure a provider with a constructor-owned image/source."
    )
    assert provider.calls == []


async def test_what_has_neither_verb_is_no_provider() -> None:
    with pytest.raises(TypeError) as error:
        await GenericEnvClient(provider=object()).connect()
    assert str(error.value) == "provider must define start_container() or start()."


@both_families
@pytest.mark.parametrize("step", [0, 1])
async def test_a_start_that_fails_is_raised_and_the_provider_stopped(family: Any, step: int, server: ScriptedServer) -> None:
    provider = family(server.url, {START[family][step]: RuntimeError("no image today")})
    client = CountingClient(provider=provider)
    with pytest.raises(RuntimeError, match="^no image today$"):
        await client.connect()
    assert provider.verbs[-1:] == STOP[family] and provider.running == 0
    provider.fail.clear()
    await client.reset()
    await client.close()


async def test_a_server_that_cannot_be_reached_after_its_start_is_stopped() -> None:
    provider = ServerProvider("http://127.0.0.1:1")
    client = CountingClient(provider=provider)
    with pytest.raises(ConnectionError):
        await client.reset()
    assert provider.verbs == ["start", "wait_for_ready", "stop"]
    assert client.base_url is None


@both_families
async def test_a_stop_that_fails_is_raised_remembered_and_tried_again(family: Any, server: ScriptedServer) -> None:
    provider = family(server.url, {STOP[family][0]: RuntimeError("the engine is away")})
    client = CountingClient(provider=provider)
    await client.connect()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="^the engine is away$"):
            await client.close()
    provider.fail.clear()
    await client.close()
    await client.close()
    assert provider.verbs.count(STOP[family][0]) == 3
    assert client.base_url is None


async def test_a_failed_stop_is_made_good_before_the_next_start(server: ScriptedServer) -> None:
    provider = ServerProvider(server.url, {"stop": RuntimeError("not now")})
    client = CountingClient(provider=provider)
    await client.connect()
    with pytest.raises(RuntimeError, match="not now"):
        await client.close()
    with pytest.raises(RuntimeError, match="not now"):
        await client.connect()
    provider.fail.clear()
    await client.reset()
    assert provider.verbs == ["start", "wait_for_ready", "stop", "stop", "stop", "start", "wait_for_ready"]
    await client.close()


@pytest.mark.parametrize("use", ["connect", "reset", "state", "new_session"])
async def test_with_a_fixed_url_nothing_is_done_while_a_stop_has_failed(use: str, server: ScriptedServer) -> None:
    provider = ServerProvider(server.url, {"stop": RuntimeError("not now")})
    client = CountingClient(server.url, provider=provider)
    await client.connect()
    with pytest.raises(RuntimeError, match="not now"):
        await client.close()
    with pytest.raises(RuntimeError) as error:
        await getattr(client, use)()
    assert str(error.value) == PENDING
    provider.fail.clear()
    await client.close()
    assert server.sessions_opened == 1


async def test_a_failed_start_whose_stop_fails_too_is_still_stopped_later(server: ScriptedServer) -> None:
    fail: dict[str, BaseException] = {"wait_for_ready": TimeoutError("not ready"), "stop": RuntimeError("not now")}
    provider = ServerProvider(server.url, fail)
    client = CountingClient(provider=provider)
    with pytest.raises(TimeoutError, match="^not ready$"):
        await client.connect()
    provider.fail.clear()
    await client.close()
    assert provider.verbs == ["start", "wait_for_ready", "stop", "stop"]


def in_the_background(provider: Recorded) -> bool:
    return threading.current_thread().name not in provider.threads


async def test_blocking_calls_of_providers_never_run_on_the_event_loop(server: ScriptedServer) -> None:
    provider = ServerProvider(server.url)
    go_on = provider.hold("wait_for_ready")
    client = CountingClient(provider=provider)
    connecting = asyncio.ensure_future(client.connect())
    await asyncio.to_thread(provider.entered["wait_for_ready"].wait, 5)
    # The loop runs all the while: this very code is the proof. Only now may the provider go on.
    go_on.set()
    await connecting
    await client.close()
    assert in_the_background(provider)


@pytest.mark.parametrize("verb", ["start", "wait_for_ready", "stop"])
async def test_a_cancellation_while_a_provider_works_leaves_nothing_running(verb: str, server: ScriptedServer) -> None:
    provider = ServerProvider(server.url)
    client = CountingClient(provider=provider)
    if verb == "stop":
        await client.connect()
    go_on = provider.hold(verb)
    working = asyncio.ensure_future(client.close() if verb == "stop" else client.connect())
    await asyncio.to_thread(provider.entered[verb].wait, 5)
    working.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert provider.running == 0 and provider.verbs[-1] == "stop"
    calls = len(provider.calls)
    await client.close()
    assert len(provider.calls) == calls


async def test_progress_is_reported_at_each_stage_and_while_it_takes_long(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openenv_client.progress.EVERY_S", 0.01)
    provider = ServerProvider(server.url)
    go_on = provider.hold("wait_for_ready")
    reports: list[Progress] = []

    def hear(report: Progress) -> None:
        reports.append(report)
        if len(reports) == 5:
            go_on.set()

    async with CountingClient(provider=provider, progress=hear):
        pass
    stages = [report.stage for report in reports]
    assert (stages[0], stages[-1], stages.count("waiting until it answers") >= 3) == ("starting", "ready", True)
    assert {report.what for report in reports} == {"ServerProvider"}
    assert [report.elapsed_s for report in reports] == sorted(report.elapsed_s for report in reports)


async def test_a_progress_callback_that_fails_ends_the_start(server: ScriptedServer) -> None:
    def hear(report: Progress) -> None:
        raise OSError("the terminal is gone")

    provider = ServerProvider(server.url)
    with pytest.raises(OSError, match="terminal is gone"):
        await CountingClient(provider=provider, progress=hear).connect()
    assert provider.running == 0


@pytest.mark.parametrize(("make", "stop"), [(ServerProvider, "stop"), (ImageProvider, "stop_container")])
def test_sync_code_starts_and_stops_providers_too(make: Callable[..., Any], stop: str) -> None:
    provider = make("http://127.0.0.1:1")
    with pytest.raises(ConnectionError):
        GenericEnvClient(provider=provider).sync().connect()
    assert provider.verbs[-1] == stop


async def test_sessions_made_at_once_start_a_provider_once(server: ScriptedServer) -> None:
    provider = ServerProvider(server.url)
    async with CountingClient(provider=provider) as parent:
        await parent.close()
        await asyncio.gather(*(parent.new_session() for _ in range(4)), parent.reset())
    assert provider.verbs == ["start", "wait_for_ready", "stop"] * 2


@pytest.mark.parametrize("use", ["connect", "new_session"])
async def test_a_close_during_a_start_leaves_no_server(use: str, server: ScriptedServer) -> None:
    provider = ServerProvider(server.url)
    client = CountingClient(provider=provider)
    await client.close()
    go_on = provider.hold("wait_for_ready")
    starting = asyncio.ensure_future(getattr(client, use)())
    await asyncio.to_thread(provider.entered["wait_for_ready"].wait, 5)
    closing = asyncio.ensure_future(client.close())
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(EpisodeLost, match="closed"):
        await starting
    await closing
    assert provider.running == 0 and client.base_url is None


async def test_when_connecting_and_stopping_fail_the_first_failure_is_raised_and_the_stop_remembered() -> None:
    provider = ServerProvider("http://127.0.0.1:1", {"stop": RuntimeError("not now")})
    client = CountingClient(provider=provider)
    with pytest.raises(ConnectionError):
        await client.connect()
    provider.fail.clear()
    await client.close()
    assert provider.verbs == ["start", "wait_for_ready", "stop", "stop"]
