"""The client's contract: how clients are made, which mode they are in, and which address they use."""

from __future__ import annotations

import inspect
import os
from typing import Any, cast

import pytest
from testkit.clients import Add, CountingClient, ServerProvider
from testkit.scripted import ScriptedServer

from openenv_client import EnvClient, GenericEnvClient, MCPToolClient
from openenv_client.errors import ConnectFailed, ServerUnreachable

INVALID_MODE = (
    "Invalid mode: '{}'. Must be 'simulation' or 'production'. "
    "Set via constructor parameter or OPENENV_CLIENT_MODE environment variable."
)


@pytest.fixture(autouse=True)
def no_mode_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENENV_CLIENT_MODE", raising=False)


def test_the_constructor_takes_what_openenvs_takes_in_the_same_order_with_the_same_defaults() -> None:
    parameters = list(inspect.signature(EnvClient).parameters.values())[:9]
    assert {each.name: each.default for each in parameters} == {
        "base_url": None,
        "connect_timeout_s": 10.0,
        "message_timeout_s": 60.0,
        "max_message_size_mb": 100.0,
        "websocket_ping_interval_s": 20.0,
        "websocket_ping_timeout_s": 20.0,
        "provider": None,
        "mode": None,
        "headers": None,
    }
    assert all(each.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for each in parameters)


def test_a_client_is_generic_in_action_observation_and_state_and_has_three_abstract_hooks() -> None:
    assert EnvClient.__abstractmethods__ == {"_step_payload", "_parse_result", "_parse_state"}
    parameters = [each.__name__ for each in vars(EnvClient)["__parameters__"]]
    assert parameters == ["ActT", "ObsT", "StateT"]


def test_without_url_and_provider_there_is_no_client() -> None:
    with pytest.raises(ValueError) as error:
        GenericEnvClient()
    assert str(error.value) == "EnvClient requires either base_url or provider."


@pytest.mark.parametrize("url", ["ftp://host", "http://", "http://host:port", "http://ho st", "http://host/#part"])
def test_what_is_no_servers_url_is_refused_before_anything_is_sent(url: str) -> None:
    with pytest.raises(ValueError, match="Invalid server URL"):
        GenericEnvClient(base_url=url)


def test_the_mode_is_simulation_unless_somebody_says_otherwise() -> None:
    assert GenericEnvClient("http://host")._mode == "simulation"
    assert MCPToolClient("http://host")._mode == "simulation"


@pytest.mark.parametrize("written", ["production", "Production", "PRODUCTION"])
def test_the_mode_can_be_an_argument_or_a_variable_in_any_case(written: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert GenericEnvClient("http://host", mode=written)._mode == "production"
    monkeypatch.setenv("OPENENV_CLIENT_MODE", written)
    assert GenericEnvClient("http://host")._mode == "production"


def test_the_argument_is_stronger_than_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENENV_CLIENT_MODE", "production")
    assert GenericEnvClient("http://host", mode="simulation")._mode == "simulation"


@pytest.mark.parametrize("written", ["", "x", "Sim", " simulation"])
def test_another_mode_is_refused_also_an_empty_variable(written: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError) as from_argument:
        GenericEnvClient("http://host", mode=written)
    monkeypatch.setenv("OPENENV_CLIENT_MODE", written)
    with pytest.raises(ValueError) as from_variable:
        GenericEnvClient("http://host")
    assert [str(from_argument.value), str(from_variable.value)] == [INVALID_MODE.format(written.lower())] * 2


def test_the_mode_of_a_client_never_changes() -> None:
    client = GenericEnvClient("http://host")
    with pytest.raises(AttributeError) as error:
        client._mode = "production"
    assert str(error.value) == "Cannot modify mode after initialization"
    assert client._mode == "simulation"


def test_base_url_is_read_only_and_has_no_trailing_slash() -> None:
    client = GenericEnvClient("http://host:8000/envs/x/")
    assert client.base_url == "http://host:8000/envs/x"
    with pytest.raises(AttributeError):
        client.base_url = "http://other"  # type: ignore[misc]


async def test_base_url_is_none_until_an_owned_provider_started_and_again_after_close() -> None:
    async with ScriptedServer() as server:
        client = GenericEnvClient(provider=ServerProvider(server.url + "/"))
        seen = [client.base_url]
        async with client:
            seen.append(client.base_url)
        assert [*seen, client.base_url] == [None, server.url, None]


@pytest.mark.parametrize(
    ("base_url", "websocket"),
    [
        ("http://localhost:1", "ws://localhost:1/ws"),
        ("https://localhost:1", "wss://localhost:1/ws"),
        ("ws://localhost:1/x/", "ws://localhost:1/x/ws"),
        ("localhost:1", "ws://localhost:1/ws"),
    ],
)
async def test_connecting_goes_to_ws_below_the_base_url_and_a_failure_names_it(base_url: str, websocket: str) -> None:
    with pytest.raises(ConnectionError) as error:
        await GenericEnvClient(base_url, connect_timeout_s=5).connect()
    assert isinstance(error.value, ConnectFailed) and isinstance(error.value.__cause__, ServerUnreachable)
    assert str(error.value) == f"Failed to connect to {websocket}: {error.value.__cause__.reason}"
    assert error.value.code == "SERVER_UNREACHABLE" and error.value.retryable


@pytest.mark.parametrize("value", [0, -1, float("nan"), "soon", True])
@pytest.mark.parametrize("name", ["connect_timeout_s", "message_timeout_s", "late_reply_s"])
def test_a_time_that_is_none_is_refused(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"^{name} must be a positive number of seconds"):
        GenericEnvClient("http://host", **{name: value})


async def test_a_steps_own_time_is_checked_before_anything_is_sent() -> None:
    async with ScriptedServer() as server, CountingClient(server.url) as client:
        with pytest.raises(ValueError, match=r"^timeout_s must be a positive number of seconds, .* and not -1$"):
            await client.step(Add(1), timeout_s=-1)
        assert server.requests == []


async def test_none_means_no_limit_as_with_openenvs_client() -> None:
    async with ScriptedServer() as server:
        async with GenericEnvClient(
            server.url, connect_timeout_s=cast(Any, None), message_timeout_s=cast(Any, None)
        ) as client:
            assert (await client.reset()).observation["count"] == 0


@pytest.fixture
def dead_proxy(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Every variable that names a proxy names one that is not there; nothing is excepted from it."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    return variables()


def variables() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}


async def test_loopback_servers_are_reached_without_a_proxy_and_no_variable_is_touched(dead_proxy: dict[str, str]) -> None:
    async with ScriptedServer() as server:
        for host in ("127.0.0.1", "localhost"):
            async with GenericEnvClient(server.url.replace("127.0.0.1", host)) as client:
                await client.reset()
    assert variables() == dead_proxy


@pytest.mark.parametrize("host", ["127.0.0.1.example.com", "my-localhost.example.com"])
async def test_a_name_that_only_looks_like_loopback_is_reached_through_the_proxy(host: str, dead_proxy: dict[str, str]) -> None:
    with pytest.raises(ConnectionError, match=r"Connect call failed \('127.0.0.1', 1\)"):
        await GenericEnvClient(f"http://{host}:8000", connect_timeout_s=5).connect()


async def test_headers_go_with_the_handshake() -> None:
    async with ScriptedServer() as server:
        async with CountingClient(server.url, headers={"Authorization": "Bearer t", "X-Team": "blue"}) as client:
            await client.new_session()
        sent: list[Any] = [(each.headers["Authorization"], each.headers["X-Team"]) for each in server.handshakes]
    assert sent == [("Bearer t", "blue")] * 2


async def test_a_reply_above_the_maximum_size_ends_the_episode_with_a_clear_error() -> None:
    async with ScriptedServer(respond=lambda *_: {"type": "state", "data": {"n": "x" * 2_000_000}}) as server:
        async with GenericEnvClient(server.url, max_message_size_mb=1.0) as client:
            with pytest.raises(RuntimeError, match="a reply was larger than 1048576 bytes"):
                await client.state()


@pytest.mark.parametrize(("interval", "pings"), [(0.05, True), (None, False)])
async def test_pings_are_sent_as_told_and_none_switches_them_off(interval: float | None, pings: bool) -> None:
    async with ScriptedServer() as server:
        async with CountingClient(server.url, websocket_ping_interval_s=interval, websocket_ping_timeout_s=None) as client:
            await client.reset()
            if pings:
                await server.until(lambda: server.pings >= 2)
            else:
                with pytest.raises(TimeoutError):
                    await server.until(lambda: server.pings > 0, 0.3)
