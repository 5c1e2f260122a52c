"""remote.py: it launches nothing. What it has in common with the others is in test_contract.py."""

from __future__ import annotations

import pytest

from openenv_client.errors import LaunchTimeout, ProviderError
from openenv_client.providers.remote import RemoteProvider


@pytest.mark.parametrize("url", ["host:8000", "ws://host:8000", "http://", "/path"])
def test_only_the_url_of_a_server_will_do(url: str) -> None:
    with pytest.raises(ValueError, match="no http:// or https:// URL"):
        RemoteProvider(url)


def test_the_base_url_has_no_trailing_slash() -> None:
    with RemoteProvider("http://127.0.0.1:1/envs/go/") as provider:
        assert provider.base_url == "http://127.0.0.1:1/envs/go"


@pytest.mark.parametrize("arguments", [{"port": 8000}, {"env_vars": {"A": "1"}}])
def test_what_only_a_launch_can_set_is_refused(arguments: dict[str, object]) -> None:
    with pytest.raises(ProviderError, match="runs elsewhere: its port and environment variables cannot be set from here"):
        RemoteProvider("http://127.0.0.1:1").start(**arguments)  # type: ignore[arg-type]


def test_a_server_that_does_not_answer_is_told_with_what_was_found() -> None:
    provider = RemoteProvider("http://127.0.0.1:1")
    provider.start()
    with pytest.raises(LaunchTimeout, match="Connection refused"):
        provider.wait_for_ready(0.1)
    assert (provider.poll(), provider.logs()) == (0, "")
