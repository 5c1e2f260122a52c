"""The connection to the Docker engine, and its failures in our words. Any engine with API 1.24 or newer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import docker
import requests
from docker.errors import APIError, DockerException

from ..errors import LaunchFailed, ProviderError
from .ready import is_loopback

NO_DOCKER = "Docker is not available. Please install Docker Desktop or Docker Engine."
ENGINE_ANSWERS_S = 60
_FIRST_ANSWER_S = 10
_NO_RIGHTS = ": only root and the group docker may use the engine's socket; add this user to the group"


def connect() -> docker.DockerClient:
    """A client of the engine that `docker` on the command line uses too (DOCKER_HOST, else the current context).

    Raises `ProviderError` if it does not answer within 10 s. The caller closes it.
    """
    try:
        client = docker.from_env(version="auto", timeout=_FIRST_ANSWER_S)
    except (DockerException, requests.RequestException) as exc:
        raise ProviderError(f"{NO_DOCKER} ({_why_no_engine(exc)})") from exc
    client.api.timeout = ENGINE_ANSWERS_S
    return client


def is_remote(client: docker.DockerClient) -> bool:
    """Whether the engine is on another machine, whose loopback is not ours."""
    parts = urlsplit(client.api.base_url)
    if parts.scheme == "http+docker":
        return parts.hostname == "ssh"
    return not is_loopback(parts.hostname or "")


@contextmanager
def engine_asked(what: str, doing: str) -> Iterator[None]:
    """Raises the SDK's failures in its block as `LaunchFailed`: launching `what` failed while `doing`, and why."""
    try:
        yield
    except (DockerException, requests.RequestException) as exc:
        raise LaunchFailed(what, f"{doing}: {explanation(exc)}") from exc


def explanation(exc: Exception) -> str:
    """What the engine said, without the HTTP around it; else that it did not answer, and why."""
    if isinstance(exc, APIError):
        return str(exc.explanation or exc).strip()
    if isinstance(exc, requests.Timeout):
        return f"the Docker engine did not answer within {ENGINE_ANSWERS_S} s"
    if isinstance(exc, requests.RequestException):
        return f"the Docker engine cannot be reached ({_innermost(exc)})"
    return str(exc)


def _why_no_engine(exc: Exception) -> str:
    inner = _innermost(exc)
    return f"{inner}{_NO_RIGHTS}" if isinstance(inner, PermissionError) else str(inner)


def _innermost(exc: BaseException) -> BaseException:
    """The first cause: the libraries in between wrap it three times."""
    while (cause := exc.__cause__ or exc.__context__) is not None:
        exc = cause
    return exc
