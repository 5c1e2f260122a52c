"""openenv_gateway.pool.adapted: providers of both families as the pool drives them, and nobody's secrets in what they say."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import pytest

from openenv_client.errors import LaunchFailed, LaunchTimeout, ProviderError
from openenv_client.providers.hiding import Hidden
from openenv_gateway.pool.adapted import Adapted, Discreet, _of_class, class_provider, secrets_of
from openenv_gateway.settings import Source

HIDDEN = Hidden({"TOKEN": "swordfish", "LONGER": "swordfish-0451", "LEVEL": "3"})


class Containers:
    """Of the container family, and not watchable."""

    def __init__(self, region: str = "eu") -> None:
        self.calls: list[tuple[Any, ...]] = [("made", region)]

    def start_container(
        self, image: str, port: int | None = None, env_vars: Mapping[str, str] | None = None, **options: Any
    ) -> str:
        self.calls.append(("start", image, env_vars, options))
        return "http://h:1"

    def stop_container(self) -> None:
        self.calls.append(("stop",))

    def wait_for_ready(self, base_url: str, timeout_s: float = 30.0) -> None:
        self.calls.append(("wait", base_url, timeout_s))

    def close(self) -> None:
        self.calls.append(("close",))


class Processes:
    """Of the other family, and watchable."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    def start(self, port: int | None = None, env_vars: Mapping[str, str] | None = None) -> str:
        if self.error is not None:
            raise self.error
        return "http://h:2"

    def stop(self) -> None: ...

    def wait_for_ready(self, timeout_s: float = 30.0) -> None:
        assert timeout_s == 9

    def poll(self) -> int | None:
        return 4

    def logs(self, tail: int = 50) -> str:
        return f"the last {tail}: swordfish-0451 and swordfish, level 3"


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module that has these classes."""
    made = ModuleType("somebodys_providers")
    vars(made).update(Containers=Containers, Processes=Processes)
    monkeypatch.setitem(sys.modules, made.__name__, made)
    return made.__name__


def test_a_class_is_made_and_started_with_what_is_configured_and_its_wait_knows_the_url(module: str) -> None:
    source = Source(
        "py", f"{module}:Containers", arguments={"region": "us"}, start={"image": "x", "gpus": 2}, env_vars={"A": "1"}
    )
    adapted = _of_class(source)
    assert adapted.poll() == 0
    assert adapted.start() == "http://h:1"
    assert adapted.poll() is None
    adapted.wait_for_ready(7)
    adapted.stop()
    assert (adapted.poll(), adapted.logs(5)) == (0, "")
    assert adapted._provider.calls == [
        ("made", "us"), ("start", "x", {"A": "1"}, {"gpus": 2}), ("wait", "http://h:1", 7), ("stop",), ("close",),
    ]  # fmt: skip


def test_one_that_can_be_watched_is_asked(module: str) -> None:
    adapted = class_provider(Source("py", f"{module}:Processes"))
    adapted.start()
    adapted.wait_for_ready(9)
    assert (adapted.poll(), adapted.logs(2)[:11]) == (4, "the last 2:")


@pytest.mark.parametrize(
    ("target", "changes", "words"),
    [
        ("no_such_module:Provider", {}, "No module named 'no_such_module'. Install its package into the environment"),
        ("somebodys_providers:Missing", {}, "has no attribute 'Missing'"),
        ("somebodys_providers:Containers", {}, "start_container\\(\\) requires image"),
        ("somebodys_providers:Containers", {"arguments": {"zone": "x"}}, "unexpected keyword argument 'zone'"),
        ("pathlib:Path", {}, "must define start_container\\(\\) or start\\(\\)"),
    ],
)
def test_a_class_that_cannot_be_used_is_told_before_anything_starts(
    module: str, target: str, changes: Mapping[str, Any], words: str
) -> None:
    with pytest.raises(ProviderError, match=words):
        class_provider(Source("py", target, **changes))


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (LaunchFailed("x", "bad swordfish", "swordfish-0451"), LaunchFailed, "bad ${TOKEN}\nLast lines of its log:\n${LONGER}"),
        (LaunchTimeout("x", "late", "swordfish"), LaunchTimeout, "late\nLast lines of its log:\n${TOKEN}"),
        (ProviderError("docker run -e TOKEN=swordfish"), ProviderError, "docker run -e TOKEN=${TOKEN}"),
        (ValueError("level 3, swordfish-0451"), ProviderError, "ValueError: level 3, ${LONGER}"),
    ],
)
def test_values_of_variables_are_in_no_error_nor_behind_it(error: Exception, kind: type[Exception], text: str) -> None:
    discreet = Discreet(Adapted(Processes(error), {}), HIDDEN)
    with pytest.raises(kind) as caught:
        discreet.start()
    assert type(caught.value) is kind and str(caught.value).endswith(text)
    assert caught.value.__cause__ is None and caught.value.__suppress_context__


def test_values_of_variables_are_in_no_log() -> None:
    assert Discreet(Adapted(Processes(), {}), HIDDEN).logs(2) == "the last 2: ${LONGER} and ${TOKEN}, level 3"


def test_texts_among_a_classs_arguments_are_secrets_too_but_its_image_is_none() -> None:
    source = Source("py", "a:B", arguments={"key": "k"}, start={"image": "i", "n": 2}, env_vars={"TOKEN": "t"})
    assert secrets_of(source) == {"key": "k", "TOKEN": "t"}
