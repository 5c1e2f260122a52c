"""The wire to an OpenEnv server without a gateway, whose `/mcp` knows sessions, a list of tools and calls of them.

Its `tools/call` passes the environment's `step` by: no reward, no end, no step count. So a step goes over `/ws`, which is
attached to the same session; tools are listed and called over `/mcp`. Servers have both since openenv 0.5.
"""

from __future__ import annotations

import logging
from collections.abc import Coroutine, Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar
from urllib.parse import quote

from openenv_client.errors import (
    BadReply,
    CapacityReached,
    EnvironmentFault,
    EpisodeLost,
    FactoryFailed,
    NotAnEnvironment,
    OpenEnvError,
    ReplyTimeout,
    ServerUnreachable,
    ToolFailed,
)
from openenv_client.frames import JsonObject
from openenv_client.mcp.bounded import Overdue, within
from openenv_client.mcp.farewell import Farewell
from openenv_client.mcp.peer import METHOD_NOT_FOUND, Peer, RpcFault
from openenv_client.results import Tool
from openenv_client.simulation import SessionWire
from openenv_client.simulation import open_wire as open_frames
from openenv_client.threads import finish
from openenv_client.tool_replies import as_tool
from openenv_client.wire import WireOptions

logger = logging.getLogger(__name__)

T = TypeVar("T")

CREATE: Final = "openenv/session/create"
CLOSE: Final = "openenv/session/close"
CLOSE_TIMEOUT_S: Final = 1.0

_GATEWAY = "put the gateway in front of it (openenv-gateway serve NAME=URL) and use its URL, or use mode='simulation'"


async def open_bare_wire(peer: Peer, options: WireOptions) -> BareWire:
    """Make a session and attach to it. Nothing is left open if that fails or is cancelled; the endpoint stays the caller's.

    Raises CapacityReached, FactoryFailed, NotAnEnvironment (with plain actions, or too old), and what connecting raises.
    """
    # Carried through: a session that was made and whose answer nobody read takes a place until the server is restarted.
    session = _Session(peer)
    try:
        await finish(within(session.create(), options.message_timeout_s))
        await within(_check_tools(session), options.message_timeout_s)
        attached = f"{peer.endpoint.url.removesuffix('/mcp')}?session_id={quote(session.id or '', safe='')}"
        return BareWire(session, await open_frames(replace(options, base_url=attached)))
    except BaseException as error:
        await finish(session.close())
        if isinstance(error, Overdue):
            raise ServerUnreachable(peer.endpoint.shown, f"no session within {options.message_timeout_s:g} s") from error
        raise


async def _check_tools(session: _Session) -> None:
    try:
        await session.list_tools()
    except RpcFault as fault:
        why = f"it has plain actions and no tools ({fault.message}), which no MCP reaches: {_GATEWAY}"
        raise NotAnEnvironment(session.peer.endpoint.shown, why) from fault


class _Session:
    """One session of OpenEnv's own JSON-RPC."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.id: str | None = None

    async def create(self) -> None:
        try:
            made = await self.peer.request(CREATE, {})
        except RpcFault as fault:
            raise self._refusal(fault) from fault
        if not isinstance(made.get("session_id"), str):
            raise BadReply("session_id", type(made.get("session_id")).__name__)
        self.id = made["session_id"]

    async def list_tools(self) -> list[Tool]:
        result = await self.request("tools/list")
        return [as_tool(tool) for tool in result.get("tools", ())]

    async def request(self, method: str, **params: Any) -> JsonObject:
        try:
            return await self.peer.request(method, {**params, "session_id": self.id})
        except RpcFault as fault:
            if fault.message.startswith("Unknown session_id"):
                raise EpisodeLost("the server has ended its session") from fault
            raise

    async def close(self) -> None:
        if self.id is None:
            return
        try:
            await within(self.peer.request(CLOSE, {"session_id": self.id}), CLOSE_TIMEOUT_S)
        except (OpenEnvError, RpcFault, Overdue) as error:
            logger.debug("the server was not told that a session is over: %s", error or type(error).__name__)

    def _refusal(self, fault: RpcFault) -> OpenEnvError:
        data = fault.data if isinstance(fault.data, dict) else {}
        if "max_sessions" in data:
            return CapacityReached(fault.message, data)
        if "factory_name" in data:
            return FactoryFailed(fault.message, data)
        if fault.code == METHOD_NOT_FOUND:
            why = f"it speaks neither MCP nor OpenEnv's session methods (openenv 0.5 or newer): {_GATEWAY}"
            return NotAnEnvironment(self.peer.endpoint.shown, why)
        return NotAnEnvironment(self.peer.endpoint.shown, f"it made no session: {fault.message}")


class BareWire:
    """A Wire. Reset, step and state as in simulation mode; `call_tool` gives no reward and is no step."""

    def __init__(self, session: _Session, frames: SessionWire) -> None:
        self._session, self._frames = session, frames
        self._lost: str | None = None
        self._farewell = Farewell(self._leave)

    def __repr__(self) -> str:
        return f"<BareWire {self._frames!r}>"

    @property
    def is_over(self) -> bool:
        """See Wire."""
        return self._lost is not None or self._frames.is_over

    async def reset(self, arguments: Mapping[str, Any], timeout_s: float) -> JsonObject:
        """See Wire."""
        return await self._frames.reset(arguments, timeout_s)

    async def step(self, action: Mapping[str, Any], timeout_s: float) -> JsonObject:
        """See Wire."""
        return await self._frames.step(action, timeout_s)

    async def state(self, timeout_s: float) -> JsonObject:
        """See Wire."""
        return await self._frames.state(timeout_s)

    async def list_tools(self, timeout_s: float) -> list[Tool]:
        """See Wire."""
        try:
            return await self._asked("tools/list", self._session.list_tools(), timeout_s)
        except RpcFault as fault:
            raise EnvironmentFault(fault.message, f"MCP {fault.code}") from fault

    async def call_tool(self, name: str, arguments: Mapping[str, Any], timeout_s: float) -> Any:
        """See Wire."""
        calling = self._session.request("tools/call", name=name, arguments=dict(arguments))
        try:
            result = await self._asked(f"the tool {name}", calling, timeout_s)
        except RpcFault as fault:
            raise ToolFailed(name, fault.message) from fault
        if result.get("is_error") is True:
            raise ToolFailed(name, _text(result))
        return result["data"] if "data" in result else result

    async def close(self) -> None:
        """See Wire."""
        self._lost = self._lost or "the client was closed meanwhile"
        await self._farewell.say()

    async def _leave(self) -> None:
        try:
            await self._frames.close()
            await self._session.close()
        finally:
            await finish(self._session.peer.endpoint.aclose())

    async def _asked(self, what: str, work: Coroutine[Any, Any, T], timeout_s: float) -> T:
        try:
            return await within(work, timeout_s)
        except Overdue as error:
            raise ReplyTimeout(what, timeout_s) from error
        except ServerUnreachable as error:
            self._lost = str(error)
            raise EpisodeLost(self._lost) from error
        except EpisodeLost as error:
            self._lost = error.reason
            raise


def _text(result: JsonObject) -> str:
    blocks = [block for block in result.get("content", ()) if isinstance(block, dict)]
    return "\n".join(str(block["text"]) for block in blocks if "text" in block) or str(result)
