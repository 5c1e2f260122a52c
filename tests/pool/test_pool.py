"""Environment sessions for those who wait: capacity learnt, queue, launches, deaths. Scripted servers over real WebSockets;
launched servers are the demo, a real child process."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import sys
import time
from pathlib import Path

import pytest
from testkit.gateways import environment_settings
from testkit.pools import DEMO, launched, listener_of, opened, pool_of
from testkit.scripted import Page, ScriptedServer

from openenv_client.connection import Connection
from openenv_client.errors import EpisodeLost, FactoryFailed, LaunchFailed, LaunchTimeout, ServerUnreachable, WebSocketRefused
from openenv_gateway.errors import Draining, QueueTimeout
from openenv_gateway.pool.pool import Pool
from openenv_gateway.pool.server import LeasedSession


async def test_each_lease_is_an_environment_session_of_its_own() -> None:
    async with ScriptedServer() as server, pool_of(environment_settings(server.url)) as pool:
        first, second = await opened(pool), await opened(pool)
        assert server.sessions_opened == 2
        await first.release()
        await first.release()
        await second.release()
        await server.until(lambda: server.sessions_open == 0)


async def test_capacity_is_learnt_from_the_refusal_and_who_waits_gets_the_place_that_becomes_free() -> None:
    async with ScriptedServer(capacity=1) as server, pool_of(environment_settings(server.url)) as pool:
        first = await opened(pool)
        waiting = asyncio.ensure_future(opened(pool))
        await server.until(lambda: server.sessions_opened == 2)
        assert not waiting.done()
        await first.release()
        await (await waiting).release()
        third = await opened(pool)
        refused = server.sessions_opened
        fourth = asyncio.ensure_future(opened(pool))
        await asyncio.sleep(0)
        assert server.sessions_opened == refused  # the capacity is known: nobody tries in vain
        await third.release()
        await (await fourth).release()


async def test_first_come_first_served() -> None:
    async with ScriptedServer(capacity=1) as server, pool_of(environment_settings(server.url)) as pool:
        holder = await opened(pool)
        order: list[int] = []

        async def play(number: int) -> None:
            lease = await opened(pool)
            order.append(number)
            await lease.release()

        tasks = []
        for number in range(5):
            tasks.append(asyncio.create_task(play(number)))
            await asyncio.sleep(0)
        await holder.release()
        await asyncio.gather(*tasks)
        assert order == [0, 1, 2, 3, 4]


async def test_a_place_that_others_hold_is_waited_for_until_the_deadline_then_told_with_the_servers_words() -> None:
    async with ScriptedServer(capacity=1) as server:
        somebody_else = await Connection.open(server.url)
        async with pool_of(environment_settings(server.url, timeouts_queue_s=0.6)) as pool:
            with pytest.raises(QueueTimeout, match="1/1 sessions active") as caught:
                await opened(pool)
            assert caught.value.retry_after_s > 0
            assert server.sessions_opened >= 3  # it tried again
            waiting = asyncio.ensure_future(opened(pool))
            await somebody_else.close()
            await (await waiting).release()


async def test_who_waits_may_leave_and_takes_no_place() -> None:
    async with ScriptedServer(capacity=1) as server, pool_of(environment_settings(server.url)) as pool:
        first = await opened(pool)
        waiting = asyncio.ensure_future(opened(pool))
        await server.until(lambda: server.sessions_opened == 2)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await first.release()
        await (await opened(pool)).release()


async def test_scarcity_is_told_so_that_lingering_lanes_can_go() -> None:
    leases: list[LeasedSession] = []
    told = asyncio.Event()

    async with ScriptedServer(capacity=1) as server:
        async with pool_of(environment_settings(server.url), on_scarcity=told.set) as pool:
            leases.append(await opened(pool))
            waiting = asyncio.ensure_future(opened(pool))
            async with asyncio.timeout(5):
                await told.wait()
            await leases[0].release()
            await (await waiting).release()


async def test_failures_of_opening_are_told_and_free_the_place() -> None:
    async with ScriptedServer(factory_error="no display") as server, pool_of(environment_settings(server.url)) as pool:
        for _ in range(3):
            with pytest.raises(FactoryFailed):
                await opened(pool)
        assert repr(pool) == "<Pool counting: servers [0/?], 0 waiting>"


async def test_an_unreachable_server_and_a_refused_websocket_are_told_at_once() -> None:
    async with pool_of(environment_settings("http://127.0.0.1:9")) as pool:
        with pytest.raises(ServerUnreachable, match=r"127\.0\.0\.1:9"):
            await opened(pool)
    async with ScriptedServer(pages={"/ws": Page(403)}) as server, pool_of(environment_settings(server.url)) as pool:
        with pytest.raises(WebSocketRefused, match="403"):
            await opened(pool)


async def test_a_stopping_pool_refuses_who_waits_and_who_comes() -> None:
    async with ScriptedServer(capacity=1) as server, pool_of(environment_settings(server.url)) as pool:
        first = await opened(pool)
        waiting = asyncio.ensure_future(opened(pool))
        await server.until(lambda: server.sessions_opened == 2)
        await pool.close()
        with pytest.raises(Draining):
            await waiting
        with pytest.raises(Draining):
            await opened(pool)
        await first.release()


# --- launched servers ------------------------------------------------------------------------------------------------


async def test_first_calls_at_once_launch_no_more_servers_than_they_need() -> None:
    settings = launched(f"{DEMO} --max-sessions 2", pool_max_servers=2, pool_sessions_per_server=2)
    async with pool_of(settings) as pool:
        leases = await asyncio.gather(*[opened(pool) for _ in range(4)])
        assert repr(pool) == "<Pool counting: servers [2/2, 2/2], 0 waiting>"
        await asyncio.gather(*[lease.release() for lease in leases])


async def test_a_learnt_capacity_launches_the_next_server() -> None:
    async with pool_of(launched(f"{DEMO} --max-sessions 1", pool_max_servers=2)) as pool:
        leases = [await opened(pool), await opened(pool)]
        assert repr(pool).startswith("<Pool counting: servers [1/1, 1/")
        await asyncio.gather(*[lease.release() for lease in leases])


async def test_a_server_that_dies_at_its_start_is_told_with_its_last_words_and_nothing_remains() -> None:
    command = f"{sys.executable} -c \"print('no license file'); raise SystemExit(3)\" {{port}}"
    async with pool_of(launched(command)) as pool:
        with pytest.raises(LaunchFailed, match="no license file"):
            await opened(pool)
        assert repr(pool) == "<Pool counting: servers [], 0 waiting>"


async def test_a_server_that_is_never_ready_is_told_as_such_and_not_as_a_full_queue() -> None:
    command = f"{sys.executable} -c 'import time; time.sleep(600)' {{port}}"
    async with pool_of(launched(command, timeouts_launch_s=0.3)) as pool:
        with pytest.raises(LaunchTimeout, match="did not become ready within 0.3 seconds"):
            await opened(pool)
        assert repr(pool) == "<Pool counting: servers [], 0 waiting>"


async def test_a_server_that_dies_is_replaced_for_the_next_call() -> None:
    async with pool_of(launched(DEMO)) as pool:
        lease = await opened(pool)
        pid = int(await asyncio.to_thread(listener_of, await pool.base_url()))
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(EpisodeLost):
            await lease.session.exchange("state", {}, 5)
        await lease.release()
        await (await opened(pool)).release()
        assert listener_of(await pool.base_url()) != pid


async def test_closing_in_the_middle_of_a_launch_leaves_nothing() -> None:
    async with pool_of(launched(f"{sys.executable} -c 'import time; time.sleep(60)' {{port}}")) as pool:
        waiting = asyncio.ensure_future(opened(pool))
        await asyncio.sleep(0.3)
        await pool.close()
        with pytest.raises(Draining):
            await waiting


async def test_a_connection_that_breaks_frees_its_place_although_its_lane_says_nothing() -> None:
    async with ScriptedServer(capacity=1) as server, pool_of(environment_settings(server.url)) as pool:
        await opened(pool)
        waiting = asyncio.ensure_future(opened(pool))
        await server.until(lambda: server.sessions_opened == 2)
        server.cut()
        await (await waiting).release()


async def test_who_finds_no_place_hears_how_many_there_are_every_time() -> None:
    async with ScriptedServer(capacity=2) as server:
        async with pool_of(environment_settings(server.url, timeouts_queue_s=0.05)) as pool:
            leases = [await opened(pool), await opened(pool)]
            for _ in range(5):
                with pytest.raises(QueueTimeout) as full:
                    await opened(pool)
                assert (full.value.active_sessions, full.value.max_sessions) == (2, 2)
            await asyncio.gather(*[lease.release() for lease in leases])


async def test_what_was_learnt_of_a_server_is_forgotten_when_its_connections_break() -> None:
    async with ScriptedServer(capacity=1) as server:
        async with pool_of(environment_settings(server.url, timeouts_queue_s=0.3)) as pool:
            await opened(pool)
            with pytest.raises(QueueTimeout):
                await opened(pool)
            server.capacity = 2  # as if restarted with more room
            server.cut()
            leases = [await opened(pool), await opened(pool)]
            await asyncio.gather(*[lease.release() for lease in leases])


async def test_launches_that_fail_are_not_repeated_at_once_and_who_waits_is_told_in_time(tmp_path: Path) -> None:
    """The first launch works, all others fail; the one server is full."""
    started = tmp_path / "started"
    script = f"[ -e {started} ] && echo 'no license' && exit 3; touch {started}; exec {DEMO} --max-sessions 1"
    async with pool_of(launched(script, pool_max_servers=3, timeouts_queue_s=1.5)) as pool:
        lease = await opened(pool)
        began = time.monotonic()
        with pytest.raises(QueueTimeout, match="no license"):
            await opened(pool)
        assert time.monotonic() - began < 30
        await lease.release()
        await (await opened(pool)).release()


async def test_a_server_that_dies_whenever_a_session_is_opened_is_given_up_after_one_more() -> None:
    program = (
        "import http.server, os, sys\n"
        "class H(http.server.BaseHTTPRequestHandler):\n"
        "    def do_GET(self):\n"
        "        if self.path == '/ws': os._exit(7)\n"
        "        self.send_response(200); self.end_headers()\n"
        "http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), H).serve_forever()\n"
    )
    async with pool_of(launched(f"{sys.executable} -c {shlex.quote(program)} {{port}}")) as pool:
        with pytest.raises(ServerUnreachable):
            await opened(pool)


async def test_stopping_does_not_wait_for_launches_that_are_under_way_however_many() -> None:
    sleeper = f"{sys.executable} -c 'import time; time.sleep(600)' {{port}}"
    pools = [Pool(launched(sleeper, timeouts_launch_s=600.0)) for _ in range(10)]
    waiting = [asyncio.ensure_future(opened(pool)) for pool in pools]
    await asyncio.sleep(0)
    async with asyncio.timeout(20):
        await asyncio.gather(*[pool.close() for pool in pools])
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} == {Draining}


async def test_the_time_of_a_launch_is_no_time_in_the_queue() -> None:
    settings = launched(f"sleep 1.2; exec {DEMO} --max-sessions 1", pool_max_servers=1, timeouts_queue_s=1.0)
    async with pool_of(settings) as pool:
        first, second = asyncio.ensure_future(opened(pool)), asyncio.ensure_future(opened(pool))
        done, _ = await asyncio.wait({first, second}, return_when=asyncio.FIRST_COMPLETED)
        await done.pop().result().release()
        for task in (first, second):
            await (await task).release()
