"""Which methods each era has, what they promise, and how their results are worded."""

from __future__ import annotations

import logging

import mcp_types
import pytest
from testkit.kernels import LATEST, REVISIONS, kernel_for, session
from testkit.scripted import ScriptedServer

from openenv_client.frames import JsonObject
from openenv_gateway.mcp.caller import Caller
from openenv_gateway.mcp.inflight import LEVELS
from openenv_gateway.mcp.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND
from openenv_gateway.mcp.revisions import HANDSHAKE, Revision

HELLO: JsonObject = {"capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
LISTS = {"tools/list": "tools", "resources/list": "resources", "prompts/list": "prompts"}
"""The lists that a declared capability promises."""


@pytest.mark.parametrize("revision", REVISIONS)
async def test_every_capability_that_is_declared_is_there(revision: Revision) -> None:
    async with ScriptedServer() as server, kernel_for(server.url) as kernel:
        caller = session(revision)
        if revision.is_modern:
            opened = await kernel.ask("server/discover", {}, caller)
        else:
            opened = await kernel.ask("initialize", {**HELLO, "protocolVersion": revision.value}, caller)
        declared = opened["capabilities"]
        assert set(declared) == {"tools", "resources", "prompts", "completions", "logging"}
        mcp_types.ServerCapabilities.model_validate(declared)
        for method, key in LISTS.items():
            assert (await kernel.ask(method, {}, caller))[key]
        argument = {"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "x", "value": ""}}
        assert (await kernel.ask("completion/complete", argument, caller))["completion"]["values"] == []


@pytest.mark.parametrize(
    "method", ["resources/subscribe", "resources/unsubscribe", "nothing", "logging/setLevel", "ping", "initialize"]
)
async def test_a_method_that_the_revision_has_not_is_not_found(method: str) -> None:
    async with ScriptedServer() as server, kernel_for(server.url) as kernel:
        assert (await kernel.refusal(method, {}, session(LATEST))).code == METHOD_NOT_FOUND
        if method.startswith(("resources", "nothing")):
            assert (await kernel.refusal(method, {"uri": "openenv://counting/readme"}, session())).code == METHOD_NOT_FOUND


async def test_what_may_be_cached_says_so_in_the_stateless_era_alone() -> None:
    async with ScriptedServer() as server, kernel_for(server.url) as kernel:
        for method in (*LISTS, "resources/templates/list"):
            result = await kernel.ask(method, caller=session(LATEST))
            assert (result["ttlMs"], result["cacheScope"], result["resultType"]) == (60_000, "private", "complete")
            assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "openenv-gateway"
            assert {"ttlMs", "resultType"}.isdisjoint(await kernel.ask(method, caller=session()))
        prompt = await kernel.ask("prompts/get", {"name": "play"}, session(LATEST))
        assert prompt["resultType"] == "complete" and "ttlMs" not in prompt


@pytest.mark.parametrize("method", [*LISTS, "resources/templates/list"])
async def test_every_list_comes_in_pages(method: str) -> None:
    key = LISTS.get(method, "resourceTemplates")
    async with ScriptedServer() as server, kernel_for(server.url) as whole, kernel_for(server.url, page_size=1) as paged:
        expected = (await whole.ask(method))[key]
        found: list[JsonObject] = []
        params: JsonObject = {}
        for _ in expected:
            page = await paged.ask(method, params)
            assert len(page[key]) == 1
            found += page[key]
            params = {"cursor": page.get("nextCursor")}
        assert (found, params) == (expected, {"cursor": None})
        assert (await paged.refusal(method, {"cursor": "99"})).code == INVALID_PARAMS


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_log_level_is_kept_with_the_session(revision: Revision) -> None:
    async with kernel_for("http://127.0.0.1:9") as kernel:
        caller = session(revision)
        assert caller.session is not None
        for level in LEVELS:
            assert await kernel.ask("logging/setLevel", {"level": level}, caller) == {}
            assert caller.session.log_level == level
        misfits: list[object] = ["loud", None, 3, ["info"], {}]
        for wrong in misfits:
            assert (await kernel.refusal("logging/setLevel", {"level": wrong}, caller)).code == INVALID_PARAMS
        assert caller.session.log_level == LEVELS[-1]


async def test_a_log_level_without_a_session_to_hold_for_is_refused() -> None:
    async with kernel_for("http://127.0.0.1:9") as kernel:
        caller = Caller(HANDSHAKE[-1], lane_name="mine")
        assert (await kernel.refusal("logging/setLevel", {"level": "info"}, caller)).code == INVALID_REQUEST


@pytest.mark.parametrize(
    "params",
    [
        HELLO,
        {**HELLO, "protocolVersion": 1},
        {"protocolVersion": "2025-11-25"},
        {**HELLO, "protocolVersion": "x", "clientInfo": 1},
    ],
)
async def test_initialize_needs_what_the_specification_says(params: JsonObject) -> None:
    async with kernel_for("http://127.0.0.1:9") as kernel:
        assert (await kernel.refusal("initialize", params)).code == INVALID_PARAMS


async def test_a_fault_of_our_own_is_logged_and_not_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with ScriptedServer() as server, kernel_for(server.url) as kernel:

        async def broken() -> None:
            raise ZeroDivisionError("secret")

        monkeypatch.setattr(kernel.environment, "tools", broken)
        with caplog.at_level(logging.ERROR):
            refusal = await kernel.refusal("tools/list")
        assert (refusal.code, "secret" in refusal.message, "secret" in caplog.text) == (INTERNAL_ERROR, False, True)
