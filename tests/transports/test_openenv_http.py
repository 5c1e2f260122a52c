"""OpenEnv's HTTP routes: what an environment says of itself, and reset, step, state with one session per cookie or header."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from testkit.gateways import Served, environment_settings, serving
from testkit.scripted import Page, ScriptedServer, error, observation

from openenv_client.discovery import describe, health
from openenv_client.frames import JsonObject

HEADER = "x-openenv-session"


def client_of(served: Served, path: str = "/envs/counting") -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=served.base_url + path, trust_env=False, timeout=10)


async def step(client: httpx.AsyncClient, add: object, **body: Any) -> httpx.Response:
    return await client.post("/step", json={"action": {"add": add}, **body})


# --- health, schema, metadata ----------------------------------------------------------------------------------------


async def test_the_gateway_says_of_an_environment_what_its_server_says(server: ScriptedServer, served: Served) -> None:
    for url in (f"{served.base_url}/envs/counting", served.base_url):
        through = await describe(url)
        assert through == await describe(server.url)
        assert through.schema_page == server.pages["/schema"]
        assert through.metadata_page == server.pages["/metadata"]


async def test_the_environment_is_healthy_once_a_server_has_answered(served: Served) -> None:
    async with client_of(served) as client:
        assert (await client.get("/health")).status_code == 503
    await served.gateway.describe()
    await health(f"{served.base_url}/envs/counting")


async def test_an_environment_without_metadata_still_has_a_name() -> None:
    async with ScriptedServer(pages={"/metadata": Page(404)}) as server, serving(environment_settings(server.url)) as served:
        async with client_of(served) as client:
            assert (await client.get("/metadata")).json() == {"name": "counting", "description": ""}


async def test_a_server_that_cannot_be_asked_is_told_as_such() -> None:
    async with serving(environment_settings("http://127.0.0.1:1")) as served, client_of(served) as client:
        answer = await client.get("/schema")
        assert answer.status_code == 503 and "SERVER_UNREACHABLE" in answer.json()["detail"]


# --- reset, step, state ----------------------------------------------------------------------------------------------


async def test_a_client_that_keeps_cookies_plays_on_what_it_has_reset(server: ScriptedServer, served: Served) -> None:
    async with client_of(served) as red, client_of(served, "") as blue:
        for client, amount in ((red, 1), (blue, 2)):
            answer = await client.post("/reset", json={"seed": amount})
            assert answer.json() == {"observation": {"count": 0, "echo": {"seed": amount}}, "reward": None, "done": False}
            assert "HttpOnly" in answer.headers["set-cookie"] and "SameSite=strict" in answer.headers["set-cookie"]
            assert (await step(client, amount)).json()["reward"] == amount
        assert (await red.get("/state")).json() == {"count": 1}
        assert (await blue.get("/state")).json() == {"count": 2}
        await red.post("/reset")
        assert (await red.get("/state")).json() == {"count": 0}
    assert server.sessions_opened == 2


async def test_a_client_without_cookies_names_its_session_in_a_header(served: Served) -> None:
    async with client_of(served) as client:
        session = {HEADER: (await client.post("/reset", json={})).headers[HEADER]}
        client.cookies.clear()
        answer = await client.post("/step", json={"action": {"add": 3}}, headers=session)
        assert answer.json()["observation"]["count"] == 3
        assert (await client.get("/state", headers=session)).json() == {"count": 3}


async def test_a_step_without_a_session_says_how_to_get_one_and_an_unknown_one_is_not_found(served: Served) -> None:
    async with client_of(served) as client:
        for answer in (await step(client, 1), await client.get("/state")):
            assert answer.status_code == 400 and "POST reset first" in answer.json()["detail"]
        assert (await client.get("/state", headers={HEADER: "unknown"})).status_code == 404
        again = await client.post("/reset", headers={HEADER: "unknown"})
        assert again.status_code == 200 and again.headers[HEADER] != "unknown"


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({}, ["body", "action"]),
        ({"action": 5}, ["body", "action"]),
        ({"action": {"add": 1}, "timeout_s": 0}, ["body", "timeout_s"]),
        ({"action": {"add": 1}, "timeout_s": "soon"}, ["body", "timeout_s"]),
        ([], ["body"]),
        ({"action": {"sub": 1}}, ["add"]),
    ],
)
async def test_a_body_that_does_not_fit_gets_422_with_the_place(served: Served, body: object, place: list[str]) -> None:
    async with client_of(served) as client:
        await client.post("/reset", json={})
        answer = await client.post("/step", json=body)
        assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (422, place)


async def test_what_is_no_json_too_large_or_of_another_type_is_refused(server: ScriptedServer) -> None:
    async with serving(environment_settings(server.url), max_body_bytes=200) as served, client_of(served) as client:
        kind = {"content-type": "application/json"}
        assert (await client.post("/reset", content=b"{nope", headers=kind)).status_code == 422
        assert (await client.post("/reset", content=b"{}", headers={"content-type": "text/plain"})).status_code == 415
        assert (await client.post("/reset", json={"pad": "x" * 300})).status_code == 413
        assert (await client.get("/reset")).status_code == 405
    assert server.requests == []


async def test_failures_of_the_environment_are_500_and_the_session_goes_on() -> None:
    def respond(session: int, frame: JsonObject) -> JsonObject:
        return error("EXECUTION_ERROR", "99") if frame["type"] == "step" else observation(count=0)

    async with ScriptedServer(respond=respond) as server, serving(environment_settings(server.url)) as served:
        async with client_of(served) as client:
            await client.post("/reset")
            for _ in range(2):
                answer = await step(client, 1)
                assert (answer.status_code, answer.json()) == (500, {"detail": "EXECUTION_ERROR: 99"})
        assert server.sessions_opened == 1


async def test_a_step_beyond_its_time_is_504_and_its_reply_answers_no_other(server: ScriptedServer, served: Served) -> None:
    async with client_of(served) as client:
        await client.post("/reset")
        server.hold_reply()
        late = await step(client, 5, timeout_s=0.05)
        assert late.status_code == 504 and "TIMEOUT" in late.json()["detail"]
        server.release_reply()
        assert (await step(client, 1)).json()["observation"] == {"count": 6, "echo": {"add": 1}}


async def test_a_lost_episode_is_410_until_reset(server: ScriptedServer, served: Served) -> None:
    async with client_of(served) as client:
        await client.post("/reset")
        server.cut()
        for _ in range(2):
            assert (await step(client, 1)).status_code == 410
        assert (await client.post("/reset")).status_code == 200
        assert (await step(client, 1)).json()["observation"]["count"] == 1


async def test_no_free_place_is_503_with_the_time_to_wait_and_leaves_no_session_behind() -> None:
    async with ScriptedServer(capacity=1) as server, serving(environment_settings(server.url, timeouts_queue_s=0.1)) as served:
        async with client_of(served) as first, client_of(served) as second:
            await first.post("/reset")
            answer = await second.post("/reset")
            assert (answer.status_code, HEADER in answer.headers, "retry-after" in answer.headers) == (503, False, True)
        assert len(served.gateway.endpoints["counting"].environment.lanes) == 1


async def test_where_agents_may_not_control_the_simulation_nobody_may(server: ScriptedServer) -> None:
    async with serving(environment_settings(server.url, mapping_exposure="agent")) as served, client_of(served) as client:
        for answer in (await client.post("/reset"), await step(client, 1), await client.get("/state")):
            assert answer.status_code == 403
        assert (await client.get("/metadata")).status_code == 200
    assert server.requests == []
