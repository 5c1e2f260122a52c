"""The pages of the gateway itself: whether it is ready, and what is said of a path that leads nowhere."""

from __future__ import annotations

import os
import signal
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest
from testkit.gateways import Served, environment_settings, serving
from testkit.pools import DEMO, launched, listener_of, until
from testkit.scripted import ScriptedServer

from openenv_client.errors import LaunchFailed
from openenv_gateway.sessions import reachable


async def test_a_gateway_is_ready_while_the_servers_that_run_elsewhere_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reachable, "REMEMBERED_S", 0)
    async with AsyncExitStack() as stack, ScriptedServer() as lasting:
        dying = await stack.enter_async_context(ScriptedServer())
        both = environment_settings(lasting.url, "lasting"), environment_settings(dying.url, "dying")
        async with serving(*both) as served, httpx.AsyncClient(base_url=served.base_url, trust_env=False) as http:
            await served.gateway.describe()
            page = await http.get("/ready")
            assert (page.status_code, page.json()["environments"]) == (200, {"lasting": True, "dying": True})
            await stack.aclose()
            page = await http.get("/ready")
            assert (page.status_code, page.json()["environments"]) == (503, {"lasting": True, "dying": False})
            assert (await http.get("/envs/lasting/health")).status_code == 200
            gone = await http.get("/envs/dying/health")
            assert (gone.status_code, gone.json()["detail"]) == (503, "Its server does not answer")


async def test_why_launches_fail_is_read_there_by_those_who_may(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(f"agent blue {'b' * 32}\n")
    tokens.chmod(0o600)
    once = f"[ -e {tmp_path}/up ] && echo 'no display' && exit 3; touch {tmp_path}/up; exec {DEMO}"
    environment = launched(once, pool_max_restarts=0)
    async with serving(environment, token_file=tokens) as served, httpx.AsyncClient(base_url=served.base_url) as http:
        await served.gateway.describe()
        owner = {"Authorization": f"Bearer {'b' * 32}"}
        details = (await http.get("/ready", headers=owner)).json()["details"]["counting"]
        assert details == {"state": "up", "servers": 1, "starting": 0, "sessions": 0, "warm": 0, "waiting": 0}
        pool = served.gateway.endpoints["counting"].environment.lanes.pool
        os.kill(listener_of(await pool.base_url()), signal.SIGKILL)
        await until(lambda: pool.is_failing)
        with pytest.raises(LaunchFailed):
            await pool.base_url()
        page = await http.get("/ready", headers=owner)
        assert (page.status_code, page.json()["environments"]) == (503, {"counting": False})
        assert page.json()["details"]["counting"]["state"] == "given up"
        for stranger in ({}, {"Authorization": "Bearer nobody"}):
            assert (await http.get("/ready", headers=stranger)).json().keys() == {"ready", "draining", "environments"}


async def test_a_server_is_asked_for_its_health_once_by_all_who_want_to_know_at_a_time(server: ScriptedServer) -> None:
    health = reachable.Reachable(server.url)
    assert await health() is True
    server.pages["/health"] = {"status": "unhealthy"}
    assert await health() is True, "an answer counts for a moment"
    assert await reachable.Reachable(server.url)() is False


@pytest.mark.parametrize("path", ["/", "/mpc", "/envs/", "/envs/chess/mcp", f"/{'x' * 500}"])
async def test_a_path_that_leads_nowhere_is_told_which_ones_lead_somewhere(served: Served, path: str) -> None:
    async with httpx.AsyncClient(base_url=served.base_url, trust_env=False) as http:
        page = await http.get(path)
    assert page.status_code == 404
    assert "/envs/counting/mcp" in page.json()["error"]
    assert len(page.text) < 400


async def test_of_many_environments_some_are_named(server: ScriptedServer) -> None:
    many = [environment_settings(server.url, f"e{number}") for number in range(25)]
    async with serving(*many) as served, httpx.AsyncClient(base_url=served.base_url, trust_env=False) as http:
        said = (await http.get("/")).json()["error"]
    assert "/envs/e19/mcp and 5 more; /ready says" in said and "e20" not in said
