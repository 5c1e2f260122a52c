"""A call leaves nothing behind that only the search for cycles would find: that search costs all later calls."""

from __future__ import annotations

import gc

from testkit.http_agent import Agent

from openenv_gateway.mcp.inflight import InFlight
from openenv_gateway.transports.direct import DirectExchange

CALLS = 20


async def test_what_a_call_made_is_freed_with_its_answer(agent: Agent) -> None:
    await agent.initialize()
    await agent.call("reset")
    gc.collect()
    gc.disable()
    try:
        for _ in range(CALLS):
            await agent.call("step", add=1)
        left = [one for one in gc.get_objects() if isinstance(one, (DirectExchange, InFlight))]
    finally:
        gc.enable()
    assert len(left) <= 2, left  # the latest answer's own task may not have ended yet
