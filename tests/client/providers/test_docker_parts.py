"""The pure parts of the Docker provider: endings, owners, images, the engine's words."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
import requests
from docker.errors import APIError

from openenv_client.providers.docker_ending import REMOVED, Ending, ending_of
from openenv_client.providers.docker_engine import explanation
from openenv_client.providers.docker_image import ImageFacts, Layers, facts_of
from openenv_client.providers.docker_owner import LABEL, Owner, has_ended, owner_of, started, this_process
from openenv_client.providers.docker_run import container_name


def state(**changes: Any) -> dict[str, Any]:
    plain = {"Running": False, "Status": "exited", "ExitCode": 0, "OOMKilled": False, "Error": ""}
    return {"State": {**plain, **changes}, "HostConfig": {"Memory": 2**25}}


@pytest.mark.parametrize(
    ("changes", "ending"),
    [
        ({"Running": True, "Status": "running"}, None),
        ({"Running": True, "Status": "paused"}, None),
        ({"Status": "created"}, None),
        ({"ExitCode": 3}, Ending(3, memory="32 MB")),
        ({"ExitCode": 137, "OOMKilled": True}, Ending(137, True, "32 MB")),
        ({"Status": "dead", "ExitCode": 1, "Error": "driver failed"}, Ending(1, False, "32 MB", "driver failed")),
    ],
)
def test_how_it_ended_is_read_from_the_engines_answer(changes: dict[str, Any], ending: Ending | None) -> None:
    assert ending_of(state(**changes)) == ending


@pytest.mark.parametrize(
    ("ending", "status", "words"),
    [
        (Ending(0), 0, "its container exited prematurely with code 0"),
        (Ending(3, error="boom"), 3, "its container exited prematurely with code 3: boom"),
        (Ending(137), -9, "its container exited prematurely with code 137 (SIGKILL)"),
        (Ending(143), -15, "its container exited prematurely with code 143 (SIGTERM)"),
        (Ending(255), 255, "its container exited prematurely with code 255"),
        (Ending(137, True), -9, "it ran out of memory and was killed; give it more than its limit (option memory)"),
        (REMOVED, -9, "its container was removed by somebody else"),
    ],
)
def test_an_ending_has_a_status_as_processes_have_it_and_a_reason(ending: Ending, status: int, words: str) -> None:
    assert (ending.status, ending.reason()) == (status, words)


def test_an_owners_labels_say_who_it_is() -> None:
    owner = this_process()
    assert owner_of(owner.labels()) == owner
    assert owner.pid == os.getpid()


@pytest.mark.parametrize("labels", [{}, {LABEL: "x"}, {**this_process().labels(), f"{LABEL}.pid": "x"}])
def test_labels_that_are_not_whole_name_nobody(labels: dict[str, str]) -> None:
    assert owner_of(labels) is None


def test_a_process_has_ended_when_its_pid_is_free_or_belongs_to_a_later_one() -> None:
    def never(host: str) -> bool:
        raise AssertionError(host)

    owner = this_process()
    assert not has_ended(owner, never)
    assert has_ended(replace(owner, started="1"), never)
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert started(process.pid) is None, "a zombie has ended"
    process.wait()
    assert started(process.pid) is None


@pytest.mark.parametrize("gone", [True, False])
def test_of_an_owner_in_another_container_the_engine_is_asked(gone: bool) -> None:
    owner = Owner("i", os.getpid(), started(os.getpid()) or "", "another boot pid:[1]", "abc123")
    asked: list[str] = []
    assert has_ended(owner, lambda host: asked.append(host) or gone) is gone  # type: ignore[func-returns-value]
    assert asked == ["abc123"]


@pytest.mark.parametrize(
    ("config", "facts", "port"),
    [
        ({}, ImageFacts(), 8000),
        ({"ExposedPorts": None, "Env": None}, ImageFacts(), 8000),
        ({"ExposedPorts": {"7860/tcp": {}}, "Env": ["A=b=c"]}, ImageFacts((7860,), frozenset({"A"})), 7860),
        ({"ExposedPorts": {"53/udp": {}, "90/tcp": {}, "80/tcp": {}}}, ImageFacts((80, 90)), 8000),
    ],
)
def test_what_an_image_says_about_itself(config: dict[str, Any], facts: ImageFacts, port: int) -> None:
    assert facts_of(config) == facts
    assert facts.port == port


def test_a_pull_is_told_in_layers_and_megabytes_and_nothing_twice() -> None:
    layers = Layers()
    megabyte = 1_000_000

    def event(layer: str, status: str, **detail: int) -> str:
        return layers.take_in({"id": layer, "status": status, "progressDetail": detail})

    assert layers.take_in({"status": "Pulling from library/x", "id": "latest"}) == "asking for it"
    assert event("a", "Pulling fs layer") == "0 of 1 layers, 0 of 0 MB"
    assert event("b", "Already exists") == "1 of 2 layers, 0 of 0 MB"
    assert event("a", "Downloading", current=megabyte, total=3 * megabyte) == "1 of 2 layers, 1 of 3 MB"
    assert event("a", "Downloading", current=megabyte + 1, total=3 * megabyte) == ""
    assert event("a", "Download complete") == "2 of 2 layers, 3 of 3 MB"
    assert event("a", "Extracting", current=1, total=2) == ""
    assert event("a", "Pull complete") == ""


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (APIError("500 Server Error for url", explanation="no such host\n"), "no such host"),
        (requests.ReadTimeout(), "the Docker engine did not answer within 60 s"),
        (requests.ConnectionError("refused"), "the Docker engine cannot be reached (refused)"),
    ],
)
def test_the_engines_failures_are_told_without_the_http_around_them(error: Exception, words: str) -> None:
    assert explanation(error) == words


@pytest.mark.parametrize(
    ("image", "start"),
    [
        ("registry.example:5000/a/Chess_Env:1@sha256:00", "openenv-chess-env-"),
        ("x", "openenv-x-"),
        ("___", "openenv-environment-"),
    ],
)
def test_a_containers_name_says_what_it_is_and_is_new_each_time(image: str, start: str) -> None:
    first, second = container_name(image), container_name(image)
    assert first.startswith(start) and second.startswith(start) and first != second
