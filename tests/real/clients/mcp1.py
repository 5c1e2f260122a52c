"""The official `mcp` 1.x client, driven by lines: one JSON command on stdin, one JSON answer on stdout.

    {"do": "open", "url": "http://…/mcp", "headers": {}}    or  {"do": "open", "command": ["program", "argument"], "env": {}}
    {"do": "list"}                              or  {"do": "call", "tool": "step", "arguments": {"cell": 5}}
    {"do": "close"}                             closes the client as its users close it; another may be opened then

Answers are {"result": …} or {"error": {"code", "message", "data"}}; the result of open is the revision. With "revision" beside
the URL it asks for an older one. Runs in a virtual environment with mcp 1 (testkit.venvs), started by testkit.mcp_1.
"""

import json
import sys
from contextlib import asynccontextmanager

import anyio
import httpx
import mcp.types as types
from mcp.client.streamable_http import streamable_http_client

from mcp import ClientSession, McpError, StdioServerParameters, stdio_client

LATEST = types.LATEST_PROTOCOL_VERSION


async def next_command():
    line = await anyio.to_thread.run_sync(sys.stdin.readline)
    return json.loads(line) if line else None


def say(message):
    print(json.dumps(message), flush=True)


def on_wire(model):
    return model.model_dump(mode="json", by_alias=True, exclude_unset=True)


@asynccontextmanager
async def transport(target):
    if "url" in target:
        http = httpx.AsyncClient(headers=target["headers"], timeout=httpx.Timeout(30, read=300))
        async with http, streamable_http_client(target["url"], http_client=http) as (read, write, _):
            yield read, write
    else:
        program, *arguments = target["command"]
        async with stdio_client(StdioServerParameters(command=program, args=arguments, env=target["env"])) as streams:
            yield streams


async def listed(session):
    tools, cursor = [], None
    while True:
        page = await session.list_tools(cursor=cursor)
        tools += [on_wire(tool) for tool in page.tools]
        cursor = page.nextCursor
        if cursor is None:
            return tools


async def carry_out(session, command):
    if command["do"] == "list":
        return await listed(session)
    return on_wire(await session.call_tool(command["tool"], command["arguments"]))


async def converse(target):
    types.LATEST_PROTOCOL_VERSION = target.get("revision") or LATEST
    async with transport(target) as (read, write), ClientSession(read, write) as session:
        say({"result": (await session.initialize()).protocolVersion})
        while (command := await next_command()) is not None and command["do"] != "close":
            try:
                say({"result": await carry_out(session, command)})
            except McpError as error:
                say({"error": on_wire(error.error)})
    say({"result": "closed"})


async def main():
    while (command := await next_command()) is not None:
        await converse(command)


anyio.run(main)
