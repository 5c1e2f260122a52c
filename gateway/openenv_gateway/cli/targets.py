"""What a command's TARGET is: an MCP endpoint, or a SPEC; and a gateway's URL that is neither."""

from __future__ import annotations

import http.client
import json
import re
import urllib.error
import urllib.request
from typing import Any

import click

from openenv_client.providers.ready import opener

NAMED = re.compile(r"[\w-]*=(?=https?://)")
LOOK_TIMEOUT_S = 2.0
MAX_PAGE_BYTES = 2**20


def is_mcp_url(target: str) -> bool:
    """Whether TARGET is an MCP endpoint (a gateway's, say) rather than a SPEC: an HTTP URL whose path ends in /mcp."""
    return target.startswith(("http://", "https://")) and target.partition("?")[0].rstrip("/").endswith("/mcp")


def refuse_gateway(target: str) -> None:
    """Raises UsageError if TARGET is the base URL of a gateway that runs: it would be taken for an environment's server.

    Looks at the URL's /ready, which OpenEnv's servers do not have. Whatever else is there, or is not, passes.
    """
    url = NAMED.sub("", target.partition("?")[0]).rstrip("/")
    if not url.startswith(("http://", "https://")):
        return
    names = _environments(url)
    if names:
        urls = ", ".join(f"{url}/envs/{name}/mcp" for name in names)
        raise click.UsageError(f"{url} is a gateway, not an environment's server. Name one of its MCP URLs: {urls}")


def _environments(url: str) -> list[str]:
    """The environments of a gateway; empty if there is none at the URL."""
    try:
        with opener(url).open(f"{url}/ready", timeout=LOOK_TIMEOUT_S) as response:
            page = response.read(MAX_PAGE_BYTES)
    except urllib.error.HTTPError as error:
        with error:
            page = error.read(MAX_PAGE_BYTES)  # 503 while it starts
    except (OSError, ValueError, http.client.HTTPException):
        return []
    return _names_in(page)


def _names_in(page: bytes) -> list[str]:
    try:
        value: Any = json.loads(page)
    except ValueError:
        return []
    environments = value.get("environments") if isinstance(value, dict) and "draining" in value else None
    return list(environments) if isinstance(environments, dict) else []
