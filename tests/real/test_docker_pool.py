"""A pool of containers: first calls at once, a full house, deaths, hangs. Real images of a real environment."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from testkit import images
from testkit.gateways import environment_settings
from testkit.patience import patience
from testkit.pools import opened, pool_of, until

from openenv_client.errors import EpisodeLost
from openenv_gateway.errors import QueueTimeout
from openenv_gateway.settings import EnvironmentSettings, Source

pytestmark = [pytest.mark.docker, pytest.mark.usefixtures("docker_engine")]

MINE = f"openenv-gateway.owner.pid={os.getpid()}"
STATE = b'"type":"state"'


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    yield
    assert images.containers(MINE) == []


@pytest.fixture(scope="module")
def image() -> str:
    return images.openenv("ENV MAX_SESSIONS=8")


def of(image: str, **changes: Any) -> EnvironmentSettings:
    return environment_settings("", source=Source("docker", image), **changes)


def docker(*words: str) -> None:
    subprocess.run(["docker", *words], check=True, capture_output=True, timeout=60)


async def test_thirty_two_first_calls_at_once_launch_four_containers_and_wait_for_one_launch(
    image: str, record_property: Callable[[str, object], None]
) -> None:
    async with pool_of(of(image, pool_max_servers=4, pool_sessions_per_server=8)) as pool:
        began = time.monotonic()
        leases = await asyncio.gather(*[opened(pool) for _ in range(32)])
        seconds = time.monotonic() - began
        assert len(images.containers(MINE)) == pool.status().servers == 4
        assert pool.status().sessions == 32
        await asyncio.gather(*[lease.release() for lease in leases])
    record_property("32 first calls on 4 containers", f"{seconds:.1f} s")


async def test_beyond_the_last_place_calls_queue_and_are_told_when_to_come_back(image: str) -> None:
    settings = of(image, pool_max_servers=2, pool_sessions_per_server=1, timeouts_queue_s=1.0)
    async with pool_of(settings) as pool:
        holders = await asyncio.gather(opened(pool), opened(pool))
        outcomes = await asyncio.gather(*[opened(pool) for _ in range(3)], return_exceptions=True)
        for outcome in outcomes:
            assert isinstance(outcome, QueueTimeout) and outcome.retryable and outcome.retry_after_s > 0
        assert len(images.containers(MINE)) == 2
        waiting = [asyncio.ensure_future(opened(pool)) for _ in range(4)]
        await until(lambda: pool.status().waiting == 4)
        for holder in holders:
            await holder.release()
        for lease in asyncio.as_completed(waiting):  # a place goes on when its session was ended
            await (await lease).release()
        assert len(images.containers(MINE)) == 2


async def test_a_container_that_is_removed_in_mid_episode_loses_its_lanes_within_a_second_and_is_replaced(image: str) -> None:
    async with pool_of(of(image, pool_max_servers=2, pool_sessions_per_server=1)) as pool:
        leases = await asyncio.gather(opened(pool), opened(pool))
        victim = images.containers(MINE)[0]
        began = time.monotonic()
        docker("rm", "--force", victim)
        ends = {asyncio.ensure_future(lease.session.wait_closed()): lease for lease in leases}
        done, others = await asyncio.wait(ends, timeout=patience(5.0), return_when=asyncio.FIRST_COMPLETED)
        assert len(done) == 1 and time.monotonic() - began < patience(2.0)  # docker itself takes some of it
        lost, kept = ends[done.pop()], ends[others.pop()]
        with pytest.raises(EpisodeLost):
            await lost.session.exchange("state", {}, 5)
        assert STATE in (await kept.session.exchange("state", {}, 5)).replace(b" ", b"")
        third = await opened(pool)
        assert len(images.containers(MINE)) == 2
        for lease in (lost, kept, third):
            await lease.release()


async def test_a_container_that_hangs_is_given_up_and_removed(image: str) -> None:
    async with pool_of(of(image, pool_max_servers=1, pool_health_timeout_s=1.0)) as pool:
        lease = await opened(pool)
        (hung,) = images.containers(MINE)
        docker("pause", hung)
        await asyncio.wait_for(lease.session.wait_closed(), patience(10.0))
        with pytest.raises(EpisodeLost, match="no sign of life"):
            await lease.session.exchange("state", {}, 5)
        await (await opened(pool)).release()
        await until(lambda: hung not in images.containers(MINE), 30.0)
        await lease.release()
