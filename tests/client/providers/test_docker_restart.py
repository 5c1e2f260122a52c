"""The Docker provider when the engine goes away and comes back: on an engine of the tests' own."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from testkit import ci, images
from testkit.engine import Engine, EngineAbsent, running

from openenv_client.errors import LaunchFailed, ProviderError
from openenv_client.providers import LocalDockerProvider

pytestmark = [
    pytest.mark.docker,
    pytest.mark.usefixtures("docker_engine", "refused_sockets"),
    # The SDK does not close the socket of a connection that was refused.
    pytest.mark.filterwarnings("ignore:Exception ignored in. <socket.socket:pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
def refused_sockets() -> Iterator[None]:
    """They are gone before another test is blamed for them."""
    yield
    gc.collect()


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    try:
        with running() as engine:
            engine.take(images.plain())
            monkeypatch.setenv("DOCKER_HOST", engine.host)
            yield engine
    except EngineAbsent as error:
        if ci.complete_run():
            raise
        pytest.skip(str(error))


def test_a_restart_of_the_engine_ends_the_container_is_seen_and_leaves_nothing(engine: Engine) -> None:
    with LocalDockerProvider(images.plain(), stop_grace_s=1) as provider:
        url = provider.start_container()
        provider.wait_for_ready(url)
        engine.stop()
        with pytest.raises(LaunchFailed, match="exited prematurely with code") as caught:
            provider.wait_for_ready("http://127.0.0.1:1", 30)
        assert "serving on 8000" in caught.value.log
        assert provider.poll() is not None
        with pytest.raises(ProviderError, match="could not be removed: the Docker engine cannot be reached"):
            provider.stop_container()
        engine.start()
        provider.stop_container()
        assert engine.containers() == []
        provider.wait_for_ready(provider.start_container())
        provider.stop_container()
        assert engine.containers() == []
