"""The whole gateway in one process, independent of a transport: its environments, their kernels and MCP sessions."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Self

from openenv_client.errors import OpenEnvError
from openenv_gateway.errors import GatewayError
from openenv_gateway.mcp.broadcast import TOOLS_CHANGED, Broadcast
from openenv_gateway.mcp.kernel import Kernel
from openenv_gateway.mcp.sessions import SessionTable
from openenv_gateway.pool.left_over import clear_left_over
from openenv_gateway.sessions.environment import Environment
from openenv_gateway.settings import EnvironmentSettings, GatewaySettings
from openenv_gateway.transports.openenv_rpc import OpenEnvRpc

log = logging.getLogger(__name__)

SWEEP_S = 1.0
ENDING_S = 2.0
"""How long calls that are ended may take to say so."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One environment with what answers for it."""

    environment: Environment
    kernel: Kernel
    sessions: SessionTable
    broadcast: Broadcast
    openenv: OpenEnvRpc


class Gateway:
    """Async context manager: leaving it ends every session and stops every server that was launched.

    `endpoints` maps the environments' names, in the order of the settings.
    """

    def __init__(self, settings: GatewaySettings) -> None:
        self.settings = settings
        self.draining = False
        self.endpoints = {environment.name: self._endpoint(environment) for environment in settings.environments}
        self._sweeper: asyncio.Task[None] | None = None
        self._clearing: asyncio.Task[None] | None = None

    def _endpoint(self, settings: EnvironmentSettings) -> Endpoint:
        environment = Environment(settings)
        # An MCP session lives at least as long as its lanes may idle.
        idle_s = max(self.settings.session_idle_s, settings.timeouts.idle_s)
        sessions = SessionTable(environment.lanes, idle_s, self.settings.max_sessions)
        broadcast = Broadcast()
        environment.on_tools_changed = partial(broadcast.publish, TOOLS_CHANGED)
        kernel = Kernel(environment, self.settings.page_size)
        return Endpoint(environment, kernel, sessions, broadcast, OpenEnvRpc(environment))

    async def __aenter__(self) -> Self:
        self._sweeper = asyncio.create_task(self._sweep(), name="sweeper of idle sessions and lanes")
        sources = [environment.source for environment in self.settings.environments]
        self._clearing = asyncio.create_task(clear_left_over(sources), name="clearing away what is left over")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.drain()
        for task in (self._sweeper, self._clearing):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        self.end_streams()
        for endpoint in self.endpoints.values():
            endpoint.sessions.close()
        outcomes = await asyncio.gather(
            *[endpoint.environment.close() for endpoint in self.endpoints.values()], return_exceptions=True
        )
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                log.error("closing an environment failed: %s", outcome)

    async def describe(self) -> None:
        """Ask every environment for its tools, which launches a server where one must run. Raises the first failure, with a
        note that names the environment."""
        async with asyncio.TaskGroup() as tasks:
            for endpoint in self.endpoints.values():
                tasks.create_task(_described(endpoint.environment))

    def drain(self) -> None:
        """Readiness goes red and new lanes are refused; calls in flight go on."""
        self.draining = True
        for endpoint in self.endpoints.values():
            endpoint.environment.lanes.drain()

    async def stop_calls(self, timeout_s: float) -> None:
        """Let calls in flight finish, at most `timeout_s`; then end them, so that each gets an answer that says so."""
        if await self.finish_calls(timeout_s):
            return
        log.warning("%d calls did not finish within %g s and are ended", self.busy, timeout_s)
        for endpoint in self.endpoints.values():
            endpoint.environment.lanes.give_up_calls()
        await self.finish_calls(ENDING_S)

    def end_streams(self) -> None:
        """End the streams that would stay open for ever, so that an HTTP server can close its connections."""
        for endpoint in self.endpoints.values():
            endpoint.broadcast.close()

    @property
    def busy(self) -> int:
        """How many lanes have a call in flight."""
        return sum(endpoint.environment.lanes.busy for endpoint in self.endpoints.values())

    async def finish_calls(self, timeout_s: float) -> bool:
        """Wait until no call is in flight, at most `timeout_s`. Returns whether all finished."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        while self.busy:
            if asyncio.get_running_loop().time() >= deadline:
                return False
            await asyncio.sleep(0.05)
        return True

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_S)
            for endpoint in self.endpoints.values():
                try:
                    endpoint.sessions.sweep()
                    endpoint.environment.lanes.sweep()
                except Exception:
                    log.exception("sweeping %s failed", endpoint.environment.name)


async def _described(environment: Environment) -> None:
    try:
        await environment.tools()
    except (OpenEnvError, GatewayError) as error:
        error.add_note(f"(environment {environment.name}: {environment.settings.source})")
        raise
