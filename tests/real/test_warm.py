"""What a warm session saves: the first call of an agent, on a real server, against one that must be launched first."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from testkit import servers, venvs
from testkit.pools import launched, pool_of, until

from openenv_gateway.pool.pool import Pool

pytestmark = pytest.mark.real


async def first_call(pool: Pool) -> tuple[float, float]:
    """Seconds that opening with a reset takes, and those of a step after it."""
    began = time.perf_counter()
    lease, _ = await pool.open("reset", {}, 60)
    opened = time.perf_counter() - began
    steps = []
    for _ in range(5):
        began = time.perf_counter()
        await lease.session.exchange("step", {"amount": 1}, 60)
        steps.append(time.perf_counter() - began)
    await lease.release()
    return opened, min(steps)


async def test_a_warm_session_spares_the_first_call_the_launch(
    venv_python: Callable[[str], Path], record_property: Callable[[str, object], None]
) -> None:
    venv_python(venvs.OPENENV_0_10)
    command = shlex.join(servers.command("counter"))
    async with pool_of(launched(command, pool_warm_sessions=1, pool_max_servers=1)) as pool:
        cold, _ = await first_call(pool)
        await until(lambda: pool.status().warm == 1)
        warm, step = await first_call(pool)
    told = f"first call {warm * 1000:.1f} ms, {(warm - step) * 1000:.1f} ms beyond a step (50 wanted); cold {cold:.1f} s"
    record_property("warm session", f"{told}, {cold / warm:.0f} times as long")
    assert warm < cold / 5
