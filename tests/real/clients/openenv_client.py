"""OpenEnv's own clients, unmodified, driven by lines: `PLAY BASE_URL` on stdin, one JSON line on stdout with everything that
the client's user would see.

Run in a virtual environment with openenv 0.10 by tests/real/test_openenv_clients.py, against an environment's server and
against the gateway in front of it. One process for many plays: the import takes seconds.
"""

import asyncio
import json
import sys

from openenv.core.env_server.mcp_types import CallToolAction, ListToolsAction
from openenv.core.generic_client import GenericEnvClient
from openenv.core.mcp_client import MCPToolClient


def plain(value):
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if hasattr(value, "observation"):
        seen = {"reward": value.reward, "done": value.done, "metadata": value.metadata}
        return {"observation": plain(value.observation), **seen}
    return value


async def attempt(awaitable):
    try:
        return plain(await awaitable)
    except RuntimeError as error:
        return {"raised": str(error)}


async def generic(url):
    """reset, step, state, a bad action, play after done, a second session beside the first, close and connect again."""
    seen = []
    async with GenericEnvClient(base_url=url) as env:
        for amount in (None, 5, 500, "much", 10, 10, 1):
            request = env.reset(seed=3, episode_id="e", label="red") if amount is None else env.step({"amount": amount})
            seen.append(await attempt(request))
        other = await env.new_session()
        seen += [plain(await other.reset(label="blue")), plain(await other.step({"amount": 2}))]
        seen += [await env.state(), await other.state()]
        await other.close()
    again = GenericEnvClient(base_url=url.replace("http", "ws", 1))
    await again.connect()
    seen += [await attempt(again.step({"amount": 1})), await again.state()]
    await again.close()
    return seen


def generic_sync(url):
    with GenericEnvClient(base_url=url).sync() as env:
        seen = [plain(env.reset(seed=3)), plain(env.step({"amount": 4})), env.state()]
        other = env.new_session()
        seen += [plain(other.reset()), env.state()]
    with GenericEnvClient(base_url=url) as env:  # the async client, used as a plain one
        return [*seen, plain(env.reset(seed=4))]


async def tools(url):
    """An MCP environment: its tools by name, as actions, and what fails; a second session."""
    seen = []
    async with MCPToolClient(base_url=url) as env:
        seen.append(plain(await env.reset(episode_id="e")))
        seen += [await env.call_tool("say", text="hi"), await env.call_tool("measure", width=2, height=3)]
        seen += [await env.call_tool("note", text="one"), await env.call_tool("picture"), await env.has_tool("note")]
        seen.append(plain(await env.step(CallToolAction(tool_name="note", arguments={"text": "two"}))))
        seen.append(len((await env.step(ListToolsAction())).observation.tools))
        other = await env.new_session()
        seen += [await other.call_tool("note", text="other"), await env.call_tool("note", text="three")]
        seen.append(plain(await env.step(CallToolAction(tool_name="finish"))))
    return seen


async def tool_extras(url):
    """What differs by design: the list of tools, calls that are steps, messages of failures."""
    async with MCPToolClient(base_url=url) as env:
        listed = {tool.name: tool.input_schema for tool in await env.list_tools()}
        await env.reset()
        await env.call_tool("say", text="hi")
        await env.call_tool("say", text="ho")
        failures = [await attempt(env.call_tool("fail", reason="because")), await attempt(env.call_tool("nothing"))]
        return {"tools": listed, "state": plain(await env.state()), "failures": failures}


async def plain_tools_async(url):
    """A plain-action environment through the tool client."""
    async with MCPToolClient(base_url=url) as env:
        seen = [[tool.name for tool in await env.list_tools()], await env.call_tool("reset", seed=3, label="red")]
        seen += [await env.call_tool("step", amount=5), await env.call_tool("state"), plain(await env.state())]
        other = await env.new_session()
        return [*seen, await other.call_tool("reset", label="blue"), await env.call_tool("step", amount=1)]


def plain_tools_sync(url):
    with MCPToolClient(base_url=url).sync() as env:
        return [env.call_tool("reset", seed=3), plain(env.reset()), env.call_tool("step", amount=2)]


async def crowded(url):
    """Two clients where one place is: the second is told."""
    async with GenericEnvClient(base_url=url) as env:
        await env.reset()
        second = await env.new_session()
        refused = await attempt(second.reset())
        return [refused, plain(await env.step({"amount": 1}))["observation"]["value"]]


async def late(url):
    """A step that outlasts the client's patience: the next request must not get its answer."""
    async with MCPToolClient(base_url=url, message_timeout_s=1.0) as env:
        await env.reset()
        try:
            await env.step(CallToolAction(tool_name="wait", arguments={"seconds": 1.5}))
            raise AssertionError("this step takes longer than its client waits")
        except TimeoutError:
            pass
        env._message_timeout = 20.0
        said = await env.step(CallToolAction(tool_name="say", arguments={"text": "after"}))
        return [said.observation.result["data"], (await env.state()).step_count]


PLAYS = (generic, generic_sync, tools, tool_extras, plain_tools_async, plain_tools_sync, crowded, late)
BY_NAME = {play.__name__: play for play in PLAYS}

for line in sys.stdin:
    name, base_url = line.split()
    result = BY_NAME[name](base_url)
    print(json.dumps(asyncio.run(result) if asyncio.iscoroutine(result) else result), flush=True)
