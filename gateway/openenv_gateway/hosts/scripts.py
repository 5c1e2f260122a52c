"""The longer blocks of `hosts.blocks`, as templates with `@KEY@` places."""

from __future__ import annotations

CURL = r"""
# One POST is enough: ?session=NAME names your session, and the name brings you back to it.
curl -s -w '\n' @NAMED@ \
  -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \
  -d '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"@TOOL@","arguments":{}}}'

# What else can be called, with its arguments:
curl -s -w '\n' @NAMED@ \
  -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \
  -d '{"jsonrpc":"2.0","id":2,"method":"tools/list"}'

# The same in MCP's own way: initialize, and send the Mcp-Session-Id that came back.
MCP_SESSION=$(curl -s -D - -o /dev/null @URL@ \
  -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \
  -d '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"curl","version":"1"}}}' \
  | tr -d '\r' | sed -n 's/^[Mm][Cc][Pp]-[Ss][Ee][Ss][Ss][Ii][Oo][Nn]-[Ii][Dd]: *//p')
curl -s @URL@ -H "Mcp-Session-Id: $MCP_SESSION" -H 'MCP-Protocol-Version: 2025-11-25' \
  -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \
  -d '{"jsonrpc":"2.0","method":"notifications/initialized"}'
curl -s -w '\n' @URL@ -H "Mcp-Session-Id: $MCP_SESSION" -H 'MCP-Protocol-Version: 2025-11-25' \
  -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \
  -d '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"@TOOL@","arguments":{}}}'
""".lstrip()  # noqa: E501  (a JSON body is one line)
"""URL and NAMED are quoted for the shell; TOOL is the tool that opens a session."""

PYTHON = '''
import asyncio

from mcp import Client@IMPORTS@


async def main() -> None:
    async with Client(@TARGET@) as client:
        for tool in (await client.list_tools()).tools:
            print(tool.name, tool.input_schema)
        # The answer names a session_id where the connection has no session of its own: pass it to every later call.
        result = await client.call_tool("@TOOL@", {})
        print(result.content[0].text)


asyncio.run(main())
'''.lstrip()
"""TARGET is a Python expression, IMPORTS what it needs beside Client."""

PYTHON_TOKEN = '''
import asyncio
import os

import httpx2

from mcp import Client
from mcp.client.streamable_http import streamable_http_client

HEADERS = {"Authorization": f"Bearer {os.environ[@VARIABLE@]}"}


async def main() -> None:
    async with httpx2.AsyncClient(headers=HEADERS, timeout=httpx2.Timeout(30, read=300)) as http:
        async with Client(streamable_http_client(@URL@, http_client=http)) as client:
            for tool in (await client.list_tools()).tools:
                print(tool.name, tool.input_schema)
            # The answer names a session_id where the connection has no session of its own: pass it to every later call.
            result = await client.call_tool("@TOOL@", {})
            print(result.content[0].text)


asyncio.run(main())
'''.lstrip()
"""URL and VARIABLE are Python expressions."""
