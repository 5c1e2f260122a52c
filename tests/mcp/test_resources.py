"""Resources: what an environment says of itself, and results that were too large to be shown."""

from __future__ import annotations

import json
from typing import Any

import pytest
from testkit import catalog
from testkit.kernels import LATEST, REVISIONS, JudgedKernel, as_principal, kernel_for, session
from testkit.media import base64_of, picture
from testkit.script import PAGES, observation
from testkit.scripted import ScriptedServer

from openenv_client.frames import JsonObject
from openenv_gateway.mapping.tools import is_mcp_environment
from openenv_gateway.mcp.caller import Caller
from openenv_gateway.mcp.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS
from openenv_gateway.mcp.revisions import Revision

README, SCHEMA = "openenv://counting/readme", "openenv://counting/schema"
LOG = "é" * 10_000
PNG = base64_of(picture())


def logging_environment(session: int, frame: JsonObject) -> JsonObject:
    """Answers every reset and step with a long log, its number in it, and a picture."""
    if frame["type"] == "state":
        return {"type": "state", "data": {"history": LOG}}
    return observation(0.5, log=LOG + str(frame["data"].get("add", "")), png=PNG)


def metadata(**more: str) -> dict[str, Any]:
    return {"/metadata": {"name": "counting", "description": "Adds up.", **more}}


async def read(kernel: JudgedKernel, uri: str, caller: Caller | None = None) -> list[JsonObject]:
    contents: list[JsonObject] = (await kernel.ask("resources/read", {"uri": uri}, caller))["contents"]
    return contents


def cut_uri(result: JsonObject, field: str = "observation") -> str:
    """Where the result's log can be read whole."""
    (marker,) = [item["$cut"] for item in result["structuredContent"][field].values() if "$cut" in item]
    uri: str = marker["read"]
    return uri


# --- what is there for everybody ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", REVISIONS)
async def test_readme_and_schema_are_listed_and_read_in_every_revision(revision: Revision) -> None:
    async with ScriptedServer(pages=metadata(readme_content="# Counting\nAdd numbers.")) as server:
        async with kernel_for(server.url) as kernel:
            caller = session(revision)
            listed = (await kernel.ask("resources/list", caller=caller))["resources"]
            assert [resource["uri"] for resource in listed] == [README, SCHEMA]
            assert ("title" in listed[0]) is (revision is not Revision.V2025_03_26)
            (readme,) = await read(kernel, README, caller)
            assert readme == {"uri": README, "mimeType": "text/markdown", "text": "# Counting\nAdd numbers."}
            (schema,) = await read(kernel, SCHEMA, caller)
            assert json.loads(schema["text"]) == PAGES["/schema"]
            assert [resource["size"] for resource in listed] == [len(item["text"].encode()) for item in (readme, schema)]


async def test_without_a_readme_the_description_stands_in_and_without_both_there_is_none() -> None:
    async with ScriptedServer(pages=metadata()) as server, kernel_for(server.url) as kernel:
        assert (await read(kernel, README))[0]["text"] == "Adds up."
    async with ScriptedServer(pages={"/metadata": {"name": "counting"}}) as server, kernel_for(server.url) as kernel:
        listed = (await kernel.ask("resources/list"))["resources"]
        assert [resource["uri"] for resource in listed] == [SCHEMA]
        assert "schema" in (await kernel.refusal("resources/read", {"uri": README})).message


async def test_a_schema_of_reset_is_told_where_the_server_has_one() -> None:
    reset = {"type": "object", "properties": {"level": {"type": "integer"}}}
    async with ScriptedServer(pages={"/schema": {**PAGES["/schema"], "reset": reset}}) as server:
        async with kernel_for(server.url) as kernel:
            assert json.loads((await read(kernel, SCHEMA))[0]["text"])["reset"] == reset


@pytest.mark.parametrize("env", [env for env in catalog.described() if not is_mcp_environment(catalog.description(env))])
async def test_recorded_environments_say_what_their_servers_said(env: str) -> None:
    async with ScriptedServer.recorded(env) as server, kernel_for(server.url) as kernel:
        described = catalog.description(env)
        (schema,) = await read(kernel, SCHEMA)
        assert json.loads(schema["text"])["action"] == described.action
        expected = described.readme or described.summary
        listed = (await kernel.ask("resources/list"))["resources"]
        assert [resource["uri"] for resource in listed] == ([SCHEMA] if expected is None else [README, SCHEMA])
        if expected is not None:
            assert (await read(kernel, README))[0]["text"] == expected


async def test_the_lists_are_the_same_for_every_caller_and_name_no_session() -> None:
    async with ScriptedServer(respond=logging_environment) as server:
        async with kernel_for(server.url, mapping_max_result_bytes=2000) as kernel:
            first, second = session(LATEST), Caller(LATEST, lane_name="other")
            methods = ("resources/list", "resources/templates/list")
            before = [await kernel.ask(method, caller=first) for method in methods]
            await kernel.call("reset", caller=first)
            after = [await kernel.ask(method, caller=second) for method in methods]
            assert before == after
            (template,) = after[1]["resourceTemplates"]
            assert template["uriTemplate"] == "openenv://counting/latest/{key}/{number}"


async def test_a_list_that_cannot_be_made_is_an_error() -> None:
    async with kernel_for("http://127.0.0.1:9") as kernel:
        refusal = await kernel.refusal("resources/list")
        assert refusal.code == INTERNAL_ERROR
        assert refusal.data["code"] == "SERVER_UNREACHABLE"


# --- what was too large ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", [Revision.V2025_11_25, Revision.V2026_07_28])
async def test_what_was_cut_can_be_read_whole(revision: Revision) -> None:
    async with ScriptedServer(respond=logging_environment) as server:
        async with kernel_for(server.url, mapping_max_result_bytes=2000) as kernel:
            caller = session(revision)
            reset, step = await kernel.call("reset", caller=caller), await kernel.call("step", {"add": 7}, caller)
            state = await kernel.call("state", caller=caller)
            (whole,) = await read(kernel, cut_uri(step), caller)
            expected = {**step["structuredContent"], "observation": {"log": LOG + "7", "png": {"$content": 1}}}
            assert json.loads(whole["text"]) == expected
            assert whole["mimeType"] == "application/json"
            (first,) = await read(kernel, cut_uri(reset), caller)
            assert json.loads(first["text"])["observation"]["log"] == LOG, "an earlier one is still there"
            (kept,) = await read(kernel, cut_uri(state, "state"), caller)
            assert json.loads(kept["text"]) == {"state": {"history": LOG}}


async def test_the_newest_observation_is_read_with_its_pictures_though_nothing_was_cut() -> None:
    async with ScriptedServer(respond=logging_environment) as server, kernel_for(server.url, mapping_text="plain") as kernel:
        caller = session()
        await kernel.call("reset", caller=caller)
        assert caller.session is not None and caller.session.lane is not None
        key = kernel.environment.lanes.latest.shelf(caller.session.lane).key
        text, png = await read(kernel, f"openenv://counting/latest/{key}/newest", caller)
        told = {"observation": {"log": LOG, "png": {"$content": 1}}, "reward": 0.5, "done": False}
        assert json.loads(text["text"]) == told
        assert (png["mimeType"], png["blob"]) == ("image/png", PNG)


async def test_a_kept_result_may_be_kept_by_the_client_too_but_not_the_newest() -> None:
    async with ScriptedServer(respond=logging_environment) as server:
        async with kernel_for(server.url, mapping_max_result_bytes=2000) as kernel:
            caller = session(LATEST)
            uri = cut_uri(await kernel.call("reset", caller=caller))
            newest = uri.rpartition("/")[0] + "/newest"
            kept, moving = [await kernel.ask("resources/read", {"uri": each}, caller) for each in (uri, newest)]
            assert (kept["ttlMs"], kept["cacheScope"]) == (60_000, "private")
            assert (moving["ttlMs"], moving["cacheScope"]) == (0, "private")


@pytest.mark.parametrize("place", ["meta", "hidden"])
async def test_a_reward_that_the_agent_may_not_see_is_not_read_either(place: str) -> None:
    async with ScriptedServer(respond=logging_environment) as server:
        async with kernel_for(server.url, mapping_max_result_bytes=2000, mapping_reward=place) as kernel:
            caller = session()
            uri = cut_uri(await kernel.call("reset", caller=caller))
            for each in (uri, uri.rpartition("/")[0] + "/newest"):
                (text, *_) = await read(kernel, each, caller)
                assert "reward" not in json.loads(text["text"])


async def test_somebody_elses_results_are_unknown_and_a_session_that_ended_has_none() -> None:
    async with ScriptedServer(respond=logging_environment) as server:
        async with kernel_for(server.url, mapping_max_result_bytes=2000) as kernel:
            caller = session()
            uri = cut_uri(await kernel.call("reset", caller=caller))
            other = as_principal(session(), "bob")
            refused = await kernel.refusal("resources/read", {"uri": uri}, other)
            guessed = await kernel.refusal("resources/read", {"uri": uri.replace("latest/", "latest/x")}, caller)
            assert (refused.code, refused.message) == (guessed.code, guessed.message)
            assert await read(kernel, uri, session()), "the same principal may read from another connection"
            assert caller.session is not None and caller.session.lane is not None
            lane = caller.session.lane
            kernel.environment.lanes.discard(lane)
            await kernel.environment.close()
            assert (await kernel.refusal("resources/read", {"uri": uri}, caller)).message == refused.message
            assert len(kernel.environment.lanes.latest) == 0


@pytest.mark.parametrize(
    "uri",
    [
        "test://nothing",
        "",
        "openenv://counting",
        "openenv://counting/readme/",
        "openenv://other/readme",
        "openenv://counting/latest/{key}/{number}",
        "openenv://counting/latest/x",
    ],
)
@pytest.mark.parametrize("revision", [Revision.V2025_11_25, Revision.V2026_07_28])
async def test_an_unknown_uri_is_refused_with_the_uri(uri: str, revision: Revision) -> None:
    async with ScriptedServer() as server, kernel_for(server.url) as kernel:
        refusal = await kernel.refusal("resources/read", {"uri": uri}, session(revision))
        assert (refusal.code, refusal.data) == (INVALID_PARAMS, {"uri": uri})


@pytest.mark.parametrize("number", ["0", "2", "-1", "x", "", "1" * 30, "²", "newest"])
async def test_a_number_that_is_not_kept_is_refused(number: str) -> None:
    async with ScriptedServer() as server, kernel_for(server.url) as kernel:
        lane = kernel.environment.lanes.new("anonymous")  # it has played nothing yet
        key = kernel.environment.lanes.latest.shelf(lane).key
        refusal = await kernel.refusal("resources/read", {"uri": f"openenv://counting/latest/{key}/{number}"})
        assert "only the latest results are kept" in refusal.message


@pytest.mark.parametrize("params", [{}, {"uri": 1}, {"uri": None}])
async def test_reading_needs_a_uri(params: JsonObject) -> None:
    async with ScriptedServer() as server, kernel_for(server.url) as kernel:
        assert (await kernel.refusal("resources/read", params)).code == INVALID_PARAMS


async def test_a_result_that_cannot_be_kept_tells_no_uri() -> None:
    async with ScriptedServer(respond=logging_environment) as server:
        async with kernel_for(server.url, mapping_max_result_bytes=2000) as kernel:
            kernel.environment.lanes.latest.lane_bytes = 5000
            result = await kernel.call("reset")
            marker = result["structuredContent"]["observation"]["log"]["$cut"]
            assert marker == {"bytes": 20_002, "head": "é" * 500}
            assert len(kernel.environment.lanes.latest) == 0
