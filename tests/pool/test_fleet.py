"""Servers that die, hang, fail at every start or are not needed any more; warm ones. Demo servers: real processes."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest
from testkit.gateways import environment_settings
from testkit.patience import patience
from testkit.pools import DEMO, launched, listener_of, opened, pool_of, until
from testkit.scripted import ScriptedServer

from openenv_client.errors import EpisodeLost, LaunchFailed
from openenv_gateway.pool import backoff, pool
from openenv_gateway.pool.fleet import Fleet
from openenv_gateway.pool.pool import Pool

DIES = "echo 'no display'; exit 3"


async def fleet_of(one: Pool, servers: int) -> list[str]:
    """The URLs of a pool's servers, once there are so many."""
    await until(lambda: one.status().servers == servers)
    fleet: Fleet = one._fleet
    return [server.running.base_url for server in fleet.servers.values() if server.running is not None]


async def test_a_server_that_is_killed_loses_its_own_lanes_at_once_and_is_replaced_while_others_go_on() -> None:
    async with pool_of(launched(f"{DEMO} --max-sessions 1", pool_max_servers=2, pool_sessions_per_server=1)) as two:
        first, second = await opened(two), await opened(two)
        first_url, _ = await fleet_of(two, 2)
        began = time.monotonic()
        os.kill(listener_of(first_url), signal.SIGKILL)
        await asyncio.wait_for(first.session.wait_closed(), patience(1.0))
        assert time.monotonic() - began < patience(1.0)
        with pytest.raises(EpisodeLost):
            await first.session.exchange("state", {}, 5)
        assert b"state" in await second.session.exchange("state", {}, 5)
        third = await opened(two)
        assert two.status().servers == 2
        for lease in (first, second, third):
            await lease.release()


async def test_a_server_that_hangs_is_given_up_and_its_lanes_are_told_why() -> None:
    async with pool_of(launched(DEMO, pool_health_timeout_s=0.5)) as one:
        lease = await opened(one)
        hung = listener_of((await fleet_of(one, 1))[0])
        os.kill(hung, signal.SIGSTOP)
        await asyncio.wait_for(lease.session.wait_closed(), patience(5.0))
        with pytest.raises(EpisodeLost, match="no sign of life for"):
            await lease.session.exchange("step", {"cell": 1}, 5)
        again = await opened(one)
        assert listener_of((await fleet_of(one, 1))[0]) != hung
        await again.release()
        await lease.release()


async def test_a_step_that_is_under_way_keeps_a_silent_server_up_to_its_own_end() -> None:
    async with pool_of(launched(DEMO, pool_health_timeout_s=0.2)) as one:
        lease = await opened(one)
        process = listener_of((await fleet_of(one, 1))[0])
        os.kill(process, signal.SIGSTOP)
        lease.due = asyncio.get_running_loop().time() + 60
        step = asyncio.ensure_future(lease.session.exchange("step", {"cell": 1}, 60))
        await until(lambda: one._fleet.servers[0].is_silent)
        await asyncio.sleep(0.6)  # three times the silence that is allowed; nothing tells that nothing happens
        assert not step.done()
        os.kill(process, signal.SIGCONT)
        assert b"observation" in await step
        await until(lambda: not one._fleet.servers[0].is_silent)
        await lease.release()


async def test_a_silent_server_gets_no_new_lanes() -> None:
    async with pool_of(launched(DEMO, pool_health_timeout_s=60.0, pool_max_servers=1, timeouts_queue_s=0.3)) as one:
        await (await opened(one)).release()
        (server,) = one._fleet.servers.values()
        server.is_silent = True
        waiting = asyncio.ensure_future(opened(one))
        await asyncio.sleep(0.05)
        assert one.status().waiting == 1
        server.is_silent = False
        one.reconsider()
        await (await waiting).release()


async def test_launches_that_always_fail_are_spaced_out_and_then_given_up_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(backoff, "FIRST_S", 0.02)
    async with pool_of(launched(DIES, pool_max_restarts=2)) as one:
        for failures in (1, 2, 3):
            with pytest.raises(LaunchFailed, match="no display"):
                await opened(one)
            assert one._fleet._backoff.failures == failures
        assert one.is_failing
        said = "given up after 3 failures in a row, the next launch is tried in 300 s"
        with pytest.raises(LaunchFailed, match=said) as told:
            await opened(one)
        assert told.value.log == "no display"
        status = one.status().as_json()
        assert (status["state"], status["log"], status["servers"]) == ("given up", "no display", 0)
        assert "exit" in status["error"] and 290 < status["next_launch_s"] <= 300


async def test_it_is_failing_only_as_long_as_no_call_would_launch_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a balancer that asks before it sends calls would never send the one that mends it."""
    monkeypatch.setattr(backoff, "FIRST_S", 0.2)
    async with pool_of(launched(DIES)) as one:
        with pytest.raises(LaunchFailed):
            await opened(one)
        assert one.is_failing
        await until(lambda: not one.is_failing)
        assert one.status().as_json()["log"] == "no display"


async def test_a_warm_session_is_there_again_after_its_server_died_without_anybody_calling() -> None:
    async with pool_of(launched(DEMO, pool_warm_sessions=1)) as one:
        await (await opened(one)).release()
        await until(lambda: one.status().warm == 1)
        os.kill(listener_of((await fleet_of(one, 1))[0]), signal.SIGKILL)
        await until(lambda: one.status().warm == 0)
        await until(lambda: one.status().warm == 1)


async def test_before_that_it_is_failing_and_after_a_success_nothing_is_left_of_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(backoff, "FIRST_S", 0.02)
    once = f"[ -e {tmp_path}/failed ] && exec {DEMO}; touch {tmp_path}/failed; {DIES}"
    async with pool_of(launched(once)) as one:
        with pytest.raises(LaunchFailed):
            await opened(one)
        assert one.status().state == "failing"
        await (await opened(one)).release()
        assert one.status().state == "up"
        assert one.status().error is None and not one.is_failing


async def test_a_server_that_nobody_uses_is_stopped_and_the_next_call_launches_another() -> None:
    async with pool_of(launched(DEMO, pool_idle_server_s=0.2)) as one:
        lease = await opened(one)
        process = listener_of((await fleet_of(one, 1))[0])
        await asyncio.sleep(0.4)  # in use: it stays
        assert one.status().servers == 1
        await lease.release()
        await until(lambda: one.status().state == "idle")
        await until(lambda: not os.path.exists(f"/proc/{process}"))
        await (await opened(one)).release()


async def test_however_many_come_and_go_one_timer_waits_for_idleness(monkeypatch: pytest.MonkeyPatch) -> None:
    async with pool_of(launched(DEMO)) as one:
        await (await opened(one)).release()
        started: list[float] = []
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "call_later", lambda after, *_: started.append(after))
        for _ in range(20):
            await (await opened(one)).release()
        assert not [after for after in started if after >= one._settings.pool.idle_server_s]


async def test_a_server_that_came_up_for_somebody_who_had_left_is_stopped_too() -> None:
    async with pool_of(launched(DEMO, pool_idle_server_s=0.2)) as one:
        waiting = asyncio.ensure_future(opened(one))
        await until(lambda: one.status().starting == 1)
        waiting.cancel()
        await until(lambda: one.status().servers == 1)
        await until(lambda: one.status().state == "idle")


async def test_of_two_idle_servers_each_is_stopped_in_its_time() -> None:
    async with pool_of(launched(DEMO, pool_max_servers=2, pool_sessions_per_server=1, pool_idle_server_s=0.5)) as one:
        first, second = await opened(one), await opened(one)
        await first.release()
        await asyncio.sleep(0.25)  # half of the time
        await second.release()
        await until(lambda: one.status().servers == 1)
        await until(lambda: one.status().servers == 0)


async def test_warm_servers_run_before_anybody_waits_and_are_not_stopped() -> None:
    async with pool_of(launched(DEMO, pool_warm_servers=2, pool_idle_server_s=0.2)) as one:
        one.reconsider()
        await fleet_of(one, 2)
        await asyncio.sleep(0.5)  # longer than they may be idle
        assert one.status().servers == 2


async def test_thirty_two_first_calls_at_once_get_four_servers_of_eight() -> None:
    async with pool_of(launched(f"{DEMO} --max-sessions 8", pool_max_servers=4, pool_sessions_per_server=8)) as one:
        leases = await asyncio.gather(*[opened(one) for _ in range(32)])
        assert (one.status().servers, one.status().sessions, one._fleet._next_key) == (4, 32, 4)
        await asyncio.gather(*[lease.release() for lease in leases])


# --- warm sessions -------------------------------------------------------------------------------------------------------


async def test_a_warm_session_is_given_to_who_comes_and_replaced() -> None:
    async with ScriptedServer() as server, pool_of(environment_settings(server.url, pool_warm_sessions=1)) as one:
        await one.base_url()
        await until(lambda: one.status().warm == 1)
        assert (server.sessions_opened, len(server.requests)) == (1, 0)
        lease = await opened(one)
        assert [request.session for request in server.requests] == [1]
        await until(lambda: one.status().warm == 1)
        assert one.status().sessions == 1
        await lease.release()


async def test_warm_sessions_leave_room_for_who_waits() -> None:
    async with ScriptedServer(capacity=1) as server, pool_of(environment_settings(server.url, pool_warm_sessions=3)) as one:
        await one.base_url()
        for _ in range(3):
            await (await opened(one)).release()
        await until(lambda: one.status().warm <= 1)


async def test_an_old_warm_session_is_replaced_unused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "WARM_FOR_S", 0.05)
    monkeypatch.setattr(pool, "WARM_AGAIN_S", 0.01)
    async with ScriptedServer() as server, pool_of(environment_settings(server.url, pool_warm_sessions=1)) as one:
        await one.base_url()
        await server.until(lambda: server.sessions_opened >= 3)
        assert server.sessions_open <= 2 and not server.requests


async def test_who_waits_hears_how_many_are_ahead() -> None:
    async with ScriptedServer(capacity=1) as server, pool_of(environment_settings(server.url)) as one:
        lease = await opened(one)
        tickets = [one.ticket() for _ in range(3)]
        waiting = [asyncio.ensure_future(one.open("reset", {}, 5, ticket)) for ticket in tickets]
        await until(lambda: one.status().waiting == 3)
        for ahead, ticket in enumerate(tickets):
            assert one.doing(ticket).startswith(f"waiting for a free environment session ({ahead} ahead in the queue, ")
        for one_waiting in waiting:
            await lease.release()
            lease, _ = await one_waiting
        await lease.release()
