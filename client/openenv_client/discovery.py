"""What a server says about itself over HTTP: `/health`, `/schema`, `/metadata`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import aclosing
from http import HTTPStatus
from typing import Any

from openenv_client.description import Description
from openenv_client.errors import NotAnEnvironment, OpenEnvError, ServerUnreachable
from openenv_client.frames import JsonObject
from openenv_client.web import HttpClient, Page

logger = logging.getLogger(__name__)

MAX_PAGE_BYTES = 8 * 2**20
"""Larger pages are refused: a schema is some kilobytes, a README in the metadata at most some hundred."""

_GATEWAY_STATUSES = (HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT)


async def describe(base_url: str, *, timeout_s: float = 10.0, headers: Mapping[str, str] | None = None) -> Description:
    """The server's schemas and what its metadata says. `timeout_s` bounds each of the two requests as a whole.

    `/metadata` is decoration and makes the server build an environment, which may fail or be slow: without a usable answer
    the description has no name, and a warning is logged unless the server just has no such page.

    Raises ServerUnreachable, NotAnEnvironment (no usable `/schema`), ValueError (no server URL).
    """
    client = _client(base_url, timeout_s, headers)
    async with aclosing(client):
        schema = _schema(await _get(client, "/schema", timeout_s))
        metadata = await _metadata(client, timeout_s)
    return Description(
        action=_member(schema, "action", client.url),
        observation=_member(schema, "observation", client.url),
        state=schema["state"] if isinstance(schema.get("state"), dict) else {},
        reset=schema["reset"] if isinstance(schema.get("reset"), dict) else None,
        name=_text(metadata, "name"),
        summary=_text(metadata, "description"),
        readme=_text(metadata, "readme_content"),
        version=_text(metadata, "version"),
        schema_page=schema,
        metadata_page=metadata,
    )


async def health(base_url: str, timeout_s: float = 10.0, *, headers: Mapping[str, str] | None = None) -> None:
    """Return if the server says that it is up (which promises no free session).

    Raises ServerUnreachable (not there, or not healthy: try again), NotAnEnvironment (something else answers), ValueError.
    """
    client = _client(base_url, timeout_s, headers)
    async with aclosing(client):
        page = await _get(client, "/health", timeout_s)
    _check_status(page)
    try:
        status = page.json_object().get("status")
    except ValueError as error:
        raise NotAnEnvironment(client.url, f"/health is {error}") from error
    if status == "unhealthy":
        raise ServerUnreachable(client.url, "it says that it is unhealthy")


def _client(base_url: str, timeout_s: float, headers: Mapping[str, str] | None) -> HttpClient:
    return HttpClient(base_url, connect_timeout_s=timeout_s, max_body_bytes=MAX_PAGE_BYTES, headers=headers)


async def _get(client: HttpClient, path: str, timeout_s: float) -> Page:
    try:  # as a whole: a server that sends a byte now and then passes every single read timeout
        return await asyncio.wait_for(client.fetch("GET", path), timeout_s)
    except (TimeoutError, asyncio.TimeoutError) as error:  # noqa: UP041  (two classes on 3.10)
        raise ServerUnreachable(client.url, f"no whole answer to {path} within {timeout_s:g} s") from error


def _check_status(page: Page) -> None:
    if page.status == HTTPStatus.OK:
        return
    if page.status in _GATEWAY_STATUSES:
        raise ServerUnreachable(page.url, f"HTTP {page.status} (it may still be starting): {page.excerpt}")
    raise NotAnEnvironment(page.url, f"HTTP {page.status}: {page.excerpt}")


def _schema(page: Page) -> JsonObject:
    if page.status == HTTPStatus.NOT_FOUND:
        raise NotAnEnvironment(page.url, "it has no /schema (HTTP 404); servers older than openenv-core 0.2 have none")
    _check_status(page)
    try:
        return page.json_object()
    except ValueError as error:
        raise NotAnEnvironment(page.url, f"its /schema is {error}") from error


def _member(schema: JsonObject, key: str, url: str) -> JsonObject:
    value = schema.get(key)
    if not isinstance(value, dict):
        found = f"{type(value).__name__} as" if key in schema else "no"
        raise NotAnEnvironment(url, f"its /schema has {found} {key!r}, where OpenEnv servers have a JSON Schema")
    return value


async def _metadata(client: HttpClient, timeout_s: float) -> JsonObject:
    try:
        page = await _get(client, "/metadata", timeout_s)
        if page.status == HTTPStatus.NOT_FOUND:
            return {}
        _check_status(page)
        return page.json_object()
    except (OpenEnvError, ValueError) as error:
        logger.warning("%s/metadata is not usable, going on without name and description: %s", client.url, error)
        return {}


def _text(metadata: Mapping[str, Any], key: str) -> str | None:
    value = metadata.get(key)
    return value if isinstance(value, str) and value else None
