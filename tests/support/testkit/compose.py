"""A compose file, started as `docker compose up` would start it, by the `docker` command alone.

Knows the keys that the README uses and no others, so that none is passed over in silence.
"""

from __future__ import annotations

import os
import shlex
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from string import Template
from typing import Any, Final

import yaml

from testkit.containers import docker, running

FLAGS: Final = {"init": "--init", "read_only": "--read-only"}
LISTS: Final = {
    "tmpfs": "--tmpfs", "cap_drop": "--cap-drop", "security_opt": "--security-opt", "group_add": "--group-add",
    "volumes": "--volume", "ports": "--publish",
}  # fmt: skip
TEXTS: Final = {"restart": "--restart"}
ELSEWHERE: Final = {"image", "build", "command", "depends_on", "networks"}


@contextmanager
def up(text: str, images: Mapping[str, str], variables: Mapping[str, str] | None = None) -> Iterator[dict[str, str]]:
    """The ids of the containers by the names of their services; everything is removed at the end.

    `images` are those to take for the file's (and for what it builds, by the service's name); `variables` are the shell's.
    Published ports are any free ones. Raises AssertionError for a key that it does not know, and what docker says.
    """
    file = yaml.safe_load(Template(text).substitute(variables or {}))
    assert set(file) <= {"services", "networks"}, file.keys()
    with ExitStack() as stack:
        networks = {name: (network or {}).get("name") or _new_name(name) for name, network in _networks(file).items()}
        for network in networks.values():
            docker("network", "create", network)
            stack.callback(docker, "network", "rm", network)
        ids: dict[str, str] = {}
        for name, service in sorted(file["services"].items(), key=lambda item: "depends_on" in item[1]):
            image = images[service["image"] if "image" in service else name]
            command = shlex.split(service.get("command", ""))
            options = [*arguments(service), *_attachment(name, service, networks)]
            ids[name] = stack.enter_context(running(image, *command, options=tuple(options)))
        yield ids


def arguments(service: Mapping[str, Any]) -> list[str]:
    """The options of `docker run` that a service's keys stand for."""
    found: list[str] = []
    for key, value in service.items():
        if key in FLAGS:
            assert value is True, key
            found.append(FLAGS[key])
        elif key in LISTS:
            for each in value:
                found += [LISTS[key], _any_port(each) if key == "ports" else str(each)]
        elif key in TEXTS:
            found += [TEXTS[key], str(value)]
        else:
            assert key in ELSEWHERE, f"the key {key} of a service is not known here"
    return found


def _networks(file: Mapping[str, Any]) -> dict[str, Any]:
    return dict(file.get("networks") or {"default": None})


def _attachment(name: str, service: Mapping[str, Any], networks: Mapping[str, str]) -> list[str]:
    (network,) = service.get("networks", ["default"])
    return ["--network", networks[network], "--network-alias", name]


def _any_port(published: str) -> str:
    address, _, inside = published.split(":")
    return f"{address}::{inside}"


def _new_name(name: str) -> str:
    return f"openenv-gateway-test-{name}-{os.getpid()}-{uuid.uuid4().hex[:6]}"
