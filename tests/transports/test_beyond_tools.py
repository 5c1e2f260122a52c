"""Resources, the prompt and completions through a real HTTP server: with the official client, and with no session at all."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Literal

import httpx
import httpx2
import mcp_types
import pytest
from mcp.client.streamable_http import streamable_http_client
from testkit.gateways import Served, environment_settings, serving
from testkit.script import observation
from testkit.scripted import ScriptedServer

from mcp import Client, MCPError

LOG = "x" * 10_000
TEMPLATE = "openenv://counting/latest/{key}/{number}"
Mode = Literal["legacy", "auto"]


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    async with ScriptedServer(respond=lambda *_: observation(1.0, log=LOG)) as server:
        async with serving(environment_settings(server.url, mapping_max_result_bytes=2000)) as served:
            yield served


@pytest.fixture
async def untrusting() -> AsyncIterator[httpx2.AsyncClient]:
    """HTTP that no proxy of the machine gets in the way of."""
    async with httpx2.AsyncClient(trust_env=False) as http:
        yield http


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_official_client_reads_explains_and_completes(
    served: Served, untrusting: httpx2.AsyncClient, mode: Mode
) -> None:
    url = f"{served.url()}?session=mine"
    async with Client(streamable_http_client(url, http_client=untrusting), mode=mode, read_timeout_seconds=20) as client:
        assert client.server_capabilities.resources is not None and client.server_capabilities.prompts is not None
        listed = (await client.list_resources()).resources
        assert [resource.uri for resource in listed] == ["openenv://counting/readme", "openenv://counting/schema"]
        for resource in listed:
            assert (await client.read_resource(resource.uri)).contents
        (prompt,) = (await client.list_prompts()).prompts
        (message,) = (await client.get_prompt(prompt.name, {"tool": "step", "goal": "Win."})).messages
        assert isinstance(message.content, mcp_types.TextContent) and message.content.text.endswith("Your goal: Win.")

        result = await client.call_tool("reset", {})
        assert result.structured_content is not None
        uri = result.structured_content["observation"]["log"]["$cut"]["read"]
        (whole,) = (await client.read_resource(uri)).contents
        assert isinstance(whole, mcp_types.TextResourceContents)
        assert json.loads(whole.text)["observation"] == {"log": LOG}

        (template,) = (await client.list_resource_templates()).resource_templates
        ref = mcp_types.ResourceTemplateReference(uri=template.uri_template)
        (key,) = (await client.complete(ref, {"name": "key", "value": ""})).completion.values
        numbers = (await client.complete(ref, {"name": "number", "value": ""}, {"key": key})).completion.values
        assert numbers == ["newest", "1"]
        assert uri == template.uri_template.replace("{key}", key).replace("{number}", "1")
        with pytest.raises(MCPError) as refused:
            await client.read_resource(f"{uri}0")
        assert refused.value.error.code == mcp_types.INVALID_PARAMS


async def test_without_a_session_all_that_is_nobodys_own_is_answered(served: Served) -> None:
    reference = {"type": "ref/resource", "uri": TEMPLATE}
    requests = {
        "resources/list": {},
        "resources/templates/list": {},
        "resources/read": {"uri": "openenv://counting/schema"},
        "prompts/list": {},
        "prompts/get": {"name": "play"},
        "completion/complete": {"ref": reference, "argument": {"name": "key", "value": ""}},
    }
    async with httpx.AsyncClient(trust_env=False) as http:
        for method, params in requests.items():
            message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            answer = (await http.post(served.url(), json=message)).json()
            assert "result" in answer, answer
        assert answer["result"]["completion"]["values"] == []
