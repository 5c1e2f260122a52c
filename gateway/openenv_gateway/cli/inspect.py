"""`tools` and `call`: look at an environment, or at a gateway's URL, from the command line."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import click

from openenv_client.frames import JsonObject
from openenv_gateway.cli.options import configure_logging, exposure_option, make_settings, token_in, token_option
from openenv_gateway.cli.progress import starting
from openenv_gateway.cli.targets import is_mcp_url, refuse_gateway
from openenv_gateway.errors import UnknownTool
from openenv_gateway.mapping.options import Exposure
from openenv_gateway.mcp.caller import Caller
from openenv_gateway.mcp.jsonrpc import RpcError
from openenv_gateway.mcp.revisions import LATEST_HANDSHAKE
from openenv_gateway.transports.gateway import Endpoint, Gateway

SUFFIXES = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/gif": "gif",
    "image/webp": "webp",
    "audio/wav": "wav",
    "audio/mpeg": "mp3",
}


@click.command()
@click.argument("target", metavar="SPEC|URL")
@click.option("--json", "as_json", is_flag=True, help="The tools as JSON, with their whole schemas.")
@exposure_option
@token_option
@click.pass_obj
def tools(debug: bool, target: str, as_json: bool, exposure: Exposure | None, token_env: str | None) -> None:
    """Show the tools that an agent sees. URL is an MCP endpoint, ending in /mcp."""
    configure_logging(debug=debug)
    _check_target(target, exposure, token_env)
    work = _remote_tools(target, token_in(token_env)) if is_mcp_url(target) else _local_tools(target, exposure)
    listed = asyncio.run(work)
    if as_json:
        click.echo(json.dumps(listed, indent=2, ensure_ascii=False))
        return
    for tool in listed:
        properties = tool["inputSchema"].get("properties", {})
        required = set(tool["inputSchema"].get("required", ()))
        arguments = ", ".join(
            f"{name}{'' if name in required else '?'}: {_kind(schema)}" for name, schema in properties.items()
        )
        click.echo(f"{click.style(tool['name'], bold=True)}({arguments})")
        click.echo("    " + str(tool.get("description", "")).strip().replace("\n", "\n    "))


@click.command()
@click.argument("target", metavar="SPEC|URL")
@click.argument("tool")
@click.argument("arguments", metavar="[JSON]", default="{}")
@click.option(
    "-o", "--output", type=click.Path(file_okay=False, path_type=Path), help="Folder in which to save pictures and sounds."
)
@exposure_option
@token_option
@click.pass_obj
def call(
    debug: bool,
    target: str,
    tool: str,
    arguments: str,
    output: Path | None,
    exposure: Exposure | None,
    token_env: str | None,
) -> None:
    """Call one tool and show what an agent would get.

    URL is an MCP endpoint, ending in /mcp; with ?session=NAME several calls play one episode of a gateway.
    """
    configure_logging(debug=debug)
    _check_target(target, exposure, token_env)
    values = _arguments(arguments)
    if output is not None:
        _prepare(output)
    if is_mcp_url(target):
        result = asyncio.run(_remote_call(target, token_in(token_env), tool, values))
    else:
        result = asyncio.run(_local_call(target, tool, values, exposure))
    _show(result, output)
    if result.get("isError"):
        sys.exit(1)


def _check_target(target: str, exposure: Exposure | None, token_env: str | None) -> None:
    """Raises UsageError for an option that means nothing for this target, and for the base URL of a gateway."""
    if is_mcp_url(target):
        if exposure is not None:
            raise click.UsageError("--exposure goes with a SPEC: what is served at a URL is for who serves it to say.")
        return
    if token_env is not None:
        raise click.UsageError("--token-env goes with the URL of a gateway, which ends in /mcp; a SPEC wants no token.")
    refuse_gateway(target)


def _arguments(text: str) -> JsonObject:
    try:
        values = json.loads(text)
    except ValueError as error:
        raise click.UsageError(f"The arguments are not JSON ({error}). Example: '{{\"move\": 4}}'") from error
    if not isinstance(values, dict):
        raise click.UsageError("The arguments must be one JSON object. Example: '{\"move\": 4}'")
    return values


def _kind(schema: JsonObject) -> str:
    if "enum" in schema:
        return "|".join(str(value) for value in schema["enum"])
    return str(schema.get("type") or " or ".join(str(option.get("type", "any")) for option in schema.get("anyOf", ())))


@asynccontextmanager
async def _local(spec: str, exposure: Exposure | None) -> AsyncIterator[tuple[Endpoint, Caller]]:
    """The environment of a spec with its server running, and who calls it."""
    settings = make_settings([spec], exposure=exposure)
    async with Gateway(settings) as gateway:
        async with starting(settings.environments):
            await gateway.describe()
        (endpoint,) = gateway.endpoints.values()
        yield endpoint, Caller(LATEST_HANDSHAKE, lane_name="command line")


async def _local_tools(spec: str, exposure: Exposure | None) -> list[JsonObject]:
    async with _local(spec, exposure) as (endpoint, caller):
        return (await endpoint.environment.tools()).advertised(caller.handles)


async def _local_call(spec: str, tool: str, arguments: JsonObject, exposure: Exposure | None) -> JsonObject:
    async with _local(spec, exposure) as (endpoint, caller):
        try:
            return await endpoint.kernel.answer(caller, "tools/call", {"name": tool, "arguments": arguments})
        except RpcError as error:
            raise UnknownTool(error.message) from error


async def _remote_tools(url: str, token: str | None) -> list[JsonObject]:
    from openenv_gateway.cli.remote import list_tools  # noqa: PLC0415  (the SDK takes a second to import)

    return await list_tools(url, token)


async def _remote_call(url: str, token: str | None, tool: str, arguments: JsonObject) -> JsonObject:
    from openenv_gateway.cli.remote import call_tool  # noqa: PLC0415  (the SDK takes a second to import)

    return await call_tool(url, token, tool, arguments)


def _show(result: JsonObject, output: Path | None) -> None:
    for number, block in enumerate(result["content"]):
        if block["type"] == "text":
            click.echo(block["text"])
        elif "data" in block:
            click.echo(_save(block, number, output), err=True)
        else:
            click.echo(json.dumps(block, ensure_ascii=False))
    structured: Any = result.get("structuredContent") or {}
    if "done" in structured:
        click.echo(f"reward: {structured.get('reward')}  done: {structured['done']}", err=True)


def _prepare(folder: Path) -> None:
    """Make the folder before the call is played: an action must not be spent for a result that cannot be saved."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.UsageError(f"Cannot save into {folder}: {error.strerror or error}") from error


def _save(block: JsonObject, number: int, output: Path | None) -> str:
    raw = base64.b64decode(block["data"])
    if output is None:
        return f"[{block['mimeType']}, {len(raw)} bytes; save it with -o FOLDER]"
    path = output / f"block-{number}.{SUFFIXES.get(block['mimeType'], 'bin')}"
    path.write_bytes(raw)
    return f"[{block['mimeType']} saved as {path}]"
