"""The Docker engine: whether it answers, whether this user may use it, and whether it has what is asked for."""

from __future__ import annotations

import getpass
import grp
import os
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import docker
import requests
from docker.errors import DockerException, ImageNotFound

from openenv_client.errors import ProviderError
from openenv_client.providers.docker_engine import connect, explanation, is_remote
from openenv_gateway.doctor import machine
from openenv_gateway.doctor.finding import Finding, Status, absent, ok

DEFAULT_SOCKET = "/var/run/docker.sock"
CHECK = "docker"
SAYS_NO = (DockerException, requests.RequestException)


@contextmanager
def asked(*, is_needed: bool) -> Iterator[tuple[Finding, docker.DockerClient | None]]:
    """What there is to say about the engine, and a client of it for the block; None where it cannot be used."""
    try:
        client = connect()
    except ProviderError as error:
        yield _unusable(error, is_needed), None
        return
    with closing(client):
        try:
            yield _found(client.version()), client
        except SAYS_NO as error:
            raise ProviderError(f"The Docker engine stopped answering: {explanation(error)}") from error


def look(client: docker.DockerClient, images: Iterable[str]) -> Iterator[Finding]:
    """The room that the engine has for images and containers, and whether the images are there."""
    root = Path(client.info()["DockerRootDir"])
    if not is_remote(client) and root.is_dir():  # not so where this process runs in a container
        yield machine.disk(root, "docker disk")
    for image in images:
        yield _image(client, image)


def _image(client: docker.DockerClient, image: str) -> Finding:
    check = f"image {image}"
    try:
        size = client.images.get(image).attrs["Size"]
    except ImageNotFound:
        said, remedy = "it is not there: the first launch pulls it, which takes its time", f"docker pull {image}"
        return Finding(check, Status.NOTE, said, remedy)
    return ok(check, f"it is there, {size / 10**6:.0f} MB", size_bytes=size)


def _found(version: dict[str, Any]) -> Finding:
    said = f"engine {version['Version']}, API {version['ApiVersion']}"
    return ok(CHECK, said, engine=version["Version"], api=version["ApiVersion"])


def _unusable(error: ProviderError, is_needed: bool) -> Finding:
    match _innermost(error):
        case PermissionError():
            said, remedy = _no_rights(_socket())
        case FileNotFoundError():
            said = f"no Docker engine is there ({_socket()} does not exist)"
            remedy = "Install Docker Engine and start it, or say with DOCKER_HOST where it is."
        case ConnectionRefusedError():
            said = f"the Docker engine does not run (nobody listens on {_socket()})"
            remedy = "Start it: sudo systemctl start docker"
        case other:
            said, remedy = f"the Docker engine cannot be used: {other}", "Correct DOCKER_HOST, or start the engine."
    return absent(CHECK, said, remedy, is_needed=is_needed)


def _no_rights(socket: str) -> tuple[str, str]:
    try:
        number = os.stat(socket).st_gid
    except OSError:
        return f"permission denied at {socket}", "Run as a user who may use the engine."
    try:
        group = grp.getgrgid(number).gr_name
    except KeyError:
        group = f"of number {number}"
    said = f"permission denied: {socket} is for root and the group {group}, and user {_user()} is not in it"
    return said, f"sudo usermod -aG {group} {_user()}, then log in again. For a container: --group-add {number}"


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())  # a container's user need not be in /etc/passwd


def _socket() -> str:
    host = os.environ.get("DOCKER_HOST", "")
    return host.removeprefix("unix://") or DEFAULT_SOCKET


def _innermost(error: BaseException) -> BaseException:
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return error
