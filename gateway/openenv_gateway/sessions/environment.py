"""One environment as the gateway serves it: its settings, its tools, its lanes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from openenv_client.description import Description
from openenv_client.discovery import describe
from openenv_client.errors import NotAnEnvironment, OpenEnvError
from openenv_client.frames import ErrorFrame, JsonObject, Observation
from openenv_gateway.errors import Draining, GatewayError
from openenv_gateway.mapping.replies import check_depth, plain_value
from openenv_gateway.mapping.results import parse_frame
from openenv_gateway.mapping.tools import Handles, ToolSet, build_tools, is_mcp_environment
from openenv_gateway.sessions.reachable import Reachable
from openenv_gateway.sessions.registry import LaneRegistry
from openenv_gateway.settings import EnvironmentSettings

log = logging.getLogger(__name__)

LIST_TOOLS: JsonObject = {"type": "list_tools"}


class Environment:
    """`lanes` holds the agents' places; `tools()` what they may call; `on_tools_changed` is called when that changed."""

    def __init__(self, settings: EnvironmentSettings) -> None:
        self.settings = settings
        self.lanes = LaneRegistry(settings, self._look_again)
        self.on_tools_changed: Callable[[], None] = lambda: None
        self.description: Description | None = None
        self._tools: ToolSet | None = None
        self._asking: asyncio.Task[ToolSet] | None = None
        self._looking: asyncio.Task[None] | None = None
        self._line = asyncio.Lock()
        self._in_line = 0
        self._reachable = Reachable(settings.source.target) if settings.source.kind == "http" else None

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def ready(self) -> bool:
        """Whether its tools are known, which means that a server answered."""
        return self._tools is not None

    @property
    def known_tools(self) -> ToolSet | None:
        """What `tools` would return at once; None where it has to ask, or callers wait in line."""
        return self._tools if not self._in_line else None

    async def is_healthy(self) -> bool:
        """Whether it can be played now: a server answered, one that runs elsewhere still does, and launches do not fail. (One
        that is launched is launched again when it has died.)"""
        if not self.ready or self.lanes.pool.is_failing:
            return False
        return self._reachable is None or await self._reachable()

    async def tools(self) -> ToolSet:
        """The environment's tools, read once from a running server (launched when there is none).

        Raises what launching or asking raises; a failure is not remembered, the next call asks again.
        """
        if (known := self.known_tools) is not None:
            return known
        # A fair lock: who comes while others still wait gets behind them, so that calls go on in the order in which they came.
        self._in_line += 1
        try:
            async with self._line:
                return self._tools or await self._shared_answer()
        finally:
            self._in_line -= 1

    async def _shared_answer(self) -> ToolSet:
        """Shielded: a caller who leaves does not end the question for the others."""
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask(), name=f"question for the tools of {self.name}")
            self._asking.add_done_callback(self._asked)
        asking = self._asking
        try:
            return await asyncio.shield(asking)
        except asyncio.CancelledError:
            if asking.cancelled():  # by close(), not by our caller
                raise Draining("The gateway is stopping") from None
            raise

    def _asked(self, asking: asyncio.Task[ToolSet]) -> None:
        self._asking = None
        if not asking.cancelled() and asking.exception() is None:
            self._tools = asking.result()

    def _look_again(self) -> None:
        """A server that runs elsewhere was restarted, perhaps with another schema."""
        if self._tools is not None and self._looking is None:
            self._looking = asyncio.create_task(self._compare(self._tools), name=f"new look at the tools of {self.name}")

    async def _compare(self, known: ToolSet) -> None:
        try:
            found = await self._ask()
        except (OpenEnvError, GatewayError) as error:
            log.warning("the tools of %s could not be read again after a restart: %s", self.name, error)
            return
        finally:
            self._looking = None
        if found.advertised(Handles.REQUIRED) != known.advertised(Handles.REQUIRED):
            log.info("the tools of %s have changed", self.name)
            self._tools = found
            self.on_tools_changed()

    async def _ask(self) -> ToolSet:
        url = await self.lanes.pool.base_url()
        self.description = _encodable(await describe(url, timeout_s=self.settings.timeouts.connect_s))
        own = await self._own_tools(url) if is_mcp_environment(self.description) else []
        return build_tools(self.description, self.settings.mapping, own, handle_life=self._handle_life())

    def _handle_life(self) -> str:
        timeouts = self.settings.timeouts
        return (
            f"It ends when it is unused for {timeouts.idle_s:g} s, or {timeouts.linger_s:g} s after the connection "
            "that used it has ended."
        )

    async def _own_tools(self, url: str) -> list[JsonObject]:
        """The tools of an MCP environment, asked on a session of their own, which is then ended."""
        lease, raw = await self.lanes.pool.open("step", LIST_TOOLS, self.settings.timeouts.step_s)
        await lease.release()
        reply = parse_frame(raw)
        if isinstance(reply, ErrorFrame):
            raise reply.as_exception()
        tools: Any = reply.observation.get("tools") if isinstance(reply, Observation) else None
        if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
            raise NotAnEnvironment(url, "its answer to list_tools carries no list of tools")
        return [plain_value(tool) for tool in tools]

    async def close(self) -> None:
        """End every lane and stop every server that was launched."""
        for task in (self._asking, self._looking):
            if task is not None:
                task.cancel()
                await asyncio.wait({task})
        await self.lanes.close()


def _encodable(description: Description) -> Description:
    """The description with nothing in it that JSON cannot carry on to agents (lone surrogates, numbers beyond its range)."""
    values = {field.name: getattr(description, field.name) for field in fields(description)}
    for value in values.values():
        check_depth(value)
    return Description(**{name: plain_value(value) for name, value in values.items()})
