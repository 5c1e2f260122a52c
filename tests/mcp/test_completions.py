"""Completions: tools for the prompt, results for the template, and never somebody else's key."""

from __future__ import annotations

from typing import Any

import pytest
from testkit.kernels import LATEST, REVISIONS, JudgedKernel, as_principal, kernel_for, session
from testkit.script import observation
from testkit.scripted import ScriptedServer

from openenv_client.frames import JsonObject
from openenv_gateway.mcp.caller import Caller
from openenv_gateway.mcp.jsonrpc import INVALID_PARAMS
from openenv_gateway.mcp.revisions import Revision

PLAY = {"type": "ref/prompt", "name": "play"}
TEMPLATE = {"type": "ref/resource", "uri": "openenv://counting/latest/{key}/{number}"}
VARIANTS = {
    "oneOf": [
        {"type": "object", "title": f"M{number}", "properties": {"type": {"const": f"move_{number}"}}, "required": ["type"]}
        for number in range(150)
    ]
}


async def values(
    kernel: JudgedKernel, ref: JsonObject, name: str, typed: str = "", caller: Caller | None = None, **context: Any
) -> list[str]:
    params = {"ref": ref, "argument": {"name": name, "value": typed}, "context": {"arguments": context}}
    found: list[str] = (await kernel.ask("completion/complete", params, caller))["completion"]["values"]
    return found


@pytest.mark.parametrize("revision", REVISIONS)
async def test_the_prompts_tool_is_completed_from_what_is_typed(revision: Revision) -> None:
    async with ScriptedServer() as server, kernel_for(server.url) as kernel:
        caller = session(revision)
        assert await values(kernel, PLAY, "tool", "", caller) == ["reset", "step", "state"]
        assert await values(kernel, PLAY, "tool", "ST", caller) == ["step", "state"]
        assert await values(kernel, PLAY, "tool", "t", caller) == ["reset", "step", "state"]
        assert await values(kernel, PLAY, "tool", "q", caller) == []


async def test_no_more_values_than_allowed_are_sent_and_the_rest_is_told() -> None:
    async with ScriptedServer(pages={"/schema": {"action": VARIANTS, "observation": {}}}) as server:
        async with kernel_for(server.url) as kernel:
            params = {"ref": PLAY, "argument": {"name": "tool", "value": "step_"}}
            completion = (await kernel.ask("completion/complete", params))["completion"]
            assert (len(completion["values"]), completion["total"], completion["hasMore"]) == (100, 150, True)


@pytest.mark.parametrize(
    ("ref", "name"),
    [
        (PLAY, "goal"),
        (PLAY, "other"),
        ({"type": "ref/prompt", "name": "other"}, "tool"),
        ({"type": "ref/resource", "uri": "openenv://counting/readme"}, "key"),
        ({"type": "ref/resource", "uri": "test://other/{id}"}, "id"),
        (TEMPLATE, "other"),
        (TEMPLATE, "number"),
    ],
)
async def test_what_is_unknown_or_free_has_no_completions(ref: JsonObject, name: str) -> None:
    async with ScriptedServer() as server, kernel_for(server.url) as kernel:
        params = {"ref": ref, "argument": {"name": name, "value": ""}}
        result = await kernel.ask("completion/complete", params)
        assert result["completion"] == {"values": [], "total": 0, "hasMore": False}


@pytest.mark.parametrize("revision", [Revision.V2025_11_25, Revision.V2026_07_28])
async def test_a_reading_key_is_completed_for_who_plays_there_and_leads_to_the_numbers(revision: Revision) -> None:
    async with ScriptedServer(respond=lambda *_: observation(0.0, log="x" * 5000)) as server:
        async with kernel_for(server.url, mapping_max_result_bytes=2000) as kernel:
            caller = session(revision)
            assert await values(kernel, TEMPLATE, "key", caller=caller) == []
            for _ in range(3):
                await kernel.call("reset", caller=caller)
            (key,) = await values(kernel, TEMPLATE, "key", caller=caller)
            assert await values(kernel, TEMPLATE, "number", caller=caller, key=key) == ["newest", "3", "2", "1"]
            assert await values(kernel, TEMPLATE, "number", "n", caller=caller, key=key) == ["newest"]
            uri = f"openenv://counting/latest/{key}/3"
            assert (await kernel.ask("resources/read", {"uri": uri}, caller))["contents"]


async def test_nobody_learns_a_key_or_numbers_that_are_not_theirs() -> None:
    async with ScriptedServer() as server, kernel_for(server.url) as kernel:
        mine = session()
        await kernel.call("reset", caller=mine)
        (key,) = await values(kernel, TEMPLATE, "key", caller=mine)
        for other in (session(), as_principal(session(), "bob"), Caller(LATEST), Caller(LATEST, lane_name="other")):
            assert await values(kernel, TEMPLATE, "key", caller=other) == []
        bob = as_principal(session(), "bob")
        assert await values(kernel, TEMPLATE, "number", caller=bob, key=key) == []
        assert await values(kernel, TEMPLATE, "number", caller=mine, key=1) == []


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"ref": PLAY},
        {"ref": PLAY, "argument": {"name": "tool"}},
        {"ref": PLAY, "argument": {"name": "tool", "value": 1}},
        {"argument": {"name": "tool", "value": ""}},
        {"ref": {"type": "ref/tool", "name": "step"}, "argument": {"name": "tool", "value": ""}},
        {"ref": {"type": "ref/prompt"}, "argument": {"name": "tool", "value": ""}},
    ],
)
async def test_malformed_requests_are_refused(params: JsonObject) -> None:
    async with ScriptedServer() as server, kernel_for(server.url) as kernel:
        assert (await kernel.refusal("completion/complete", params)).code == INVALID_PARAMS
