"""A scripted environment, a gateway in front of it over real HTTP, and an agent on it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from testkit.gateways import Served, environment_settings, serving
from testkit.http_agent import Agent
from testkit.scripted import ScriptedServer


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer() as server:
        yield server


@pytest.fixture
async def served(server: ScriptedServer) -> AsyncIterator[Served]:
    async with serving(environment_settings(server.url)) as served:
        yield served


@pytest.fixture
async def agent(served: Served) -> AsyncIterator[Agent]:
    async with Agent(served.url()) as agent:
        yield agent
