"""The wire to the gateway: `reset`, `step` and `state` are calls of the tools of those names, in a session of the client's own.

The session is made by `openenv/session/create` before the first call and ended by `openenv/session/close`. So its handle is
known before anything happens in it, whatever becomes of the call in which it happens, and no environment session is left
behind. MCP has no such pair: a handle that `reset` returns is lost with a cancelled reset, and a session that nobody ends keeps
its environment for others until it is found idle.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from openenv_client.errors import BadReply, EpisodeLost, InvalidArguments, OpenEnvError, ServerUnreachable, ToolFailed
from openenv_client.frames import JsonObject
from openenv_client.mcp.actions import OBSERVE, RESET, STATE, STEP, Call, Toolbox
from openenv_client.mcp.bounded import Overdue, within
from openenv_client.mcp.calls import Calls, Kind
from openenv_client.mcp.farewell import Farewell
from openenv_client.mcp.faults import late_reply, result_failure, rpc_failure
from openenv_client.mcp.peer import VERBATIM, Peer, RpcFault, Unframed
from openenv_client.mcp.results import observed, stated, structured
from openenv_client.results import Tool
from openenv_client.threads import finish
from openenv_client.tool_replies import LIST_TOOLS, as_tool, called
from openenv_client.wire import WireOptions

logger = logging.getLogger(__name__)

CREATE: Final = "openenv/session/create"
CLOSE: Final = "openenv/session/close"
CLOSE_TIMEOUT_S: Final = 1.0


class GatewayWire:
    """A Wire. With `late_reply_s` it keeps an episode over a timeout as `SessionWire` does (see `calls`)."""

    def __init__(self, peer: Peer, options: WireOptions) -> None:
        self._peer = peer
        self._sessions = Peer(peer.endpoint, Unframed())
        self._connect_timeout_s = options.connect_timeout_s
        self._calls = Calls(options.late_reply_s)
        self._toolbox: Toolbox | None = None
        self._session_id: str | None = None
        self._farewell = Farewell(self._leave)

    def __repr__(self) -> str:
        return f"<GatewayWire {self._peer!r}{' over' if self.is_over else ''}>"

    @property
    def is_over(self) -> bool:
        """See Wire. That the gateway is gone, or the environment behind it, is only noticed by the next call."""
        return self._calls.over is not None

    async def reset(self, arguments: Mapping[str, Any], timeout_s: float) -> JsonObject:
        """See Wire."""
        await self._calls.settle()
        self._calls.late = None
        call = Call(RESET, _checked(arguments))
        return await self._observed("reset", lambda toolbox: call, timeout_s)

    async def step(self, action: Mapping[str, Any], timeout_s: float) -> JsonObject:
        """See Wire. Before the first reset the gateway makes one by itself, and says so in the payload's `notice`."""
        await self._calls.settle()
        self._calls.tell_late()
        given = _checked(action)
        if given == LIST_TOOLS and STEP not in (toolbox := await self._listed(timeout_s)):
            return {"observation": {"tools": [vars(tool) for tool in toolbox.own]}, "reward": None, "done": False}
        return await self._observed("step", lambda toolbox: toolbox.call_of(given), timeout_s)

    async def state(self, timeout_s: float) -> JsonObject:
        """See Wire."""
        await self._calls.settle()
        return stated(await self._looked(Call(STATE, {}), timeout_s))

    async def list_tools(self, timeout_s: float) -> list[Tool]:
        """See Wire. All that the gateway offers this client: `reset`, `state` or `observe` among them."""
        await self._calls.settle()
        return list((await self._listed(timeout_s)).tools)

    async def call_tool(self, name: str, arguments: Mapping[str, Any], timeout_s: float) -> Any:
        """See Wire. Of the gateway's own tools (`reset`, `step`, `state` ...) what it answers is returned, reward and all."""
        await self._calls.settle()
        call = Call(name, _checked(arguments))
        if name in (STATE, OBSERVE):
            answer = structured(await self._looked(call, timeout_s))
            return {key: value for key, value in answer.items() if key not in ("session_id", "late")}
        if name == RESET:
            self._calls.late = None
        self._calls.tell_late()
        payload = await self._observed("reset" if name == RESET else "step", lambda toolbox: call, timeout_s)
        return called(name, payload) if "tool_name" in payload["observation"] else payload

    async def close(self) -> None:
        """See Wire."""
        try:
            await self._calls.stop()
        finally:
            await self._farewell.say()

    async def _leave(self) -> None:
        try:
            await within(self._say_goodbye(), CLOSE_TIMEOUT_S)
        except (OpenEnvError, RpcFault, Overdue) as error:
            logger.debug("the gateway was left without a word: %s", error or type(error).__name__)
        finally:
            await finish(self._peer.endpoint.aclose())

    async def _observed(self, kind: Kind, choose: Callable[[Toolbox], Call], timeout_s: float) -> JsonObject:
        async def work() -> JsonObject:
            return observed(await self._result(kind, choose))

        return await self._calls.run(kind, work(), timeout_s)

    async def _looked(self, call: Call, timeout_s: float) -> JsonObject:
        """The result of a call that changes nothing. What it tells of an earlier action is kept for the next."""
        result = await self._calls.run("state", self._result("state", lambda toolbox: call), timeout_s)
        note = structured(result).get("late")
        if isinstance(note, dict):
            self._calls.late = late_reply(note)
        return result

    async def _listed(self, timeout_s: float) -> Toolbox:
        return await self._calls.run("tools/list", self._list(), timeout_s)

    # --- requests ---------------------------------------------------------------------------------------------------

    async def _result(self, kind: Kind, choose: Callable[[Toolbox], Call]) -> JsonObject:
        toolbox = self._toolbox or await self._list()
        call = choose(toolbox)
        _check_offered(call, toolbox)
        params = {"name": call.tool, "arguments": await self._with_session(call, toolbox), "_meta": {VERBATIM: True}}
        began = time.monotonic()
        result = await self._request(kind, "tools/call", params, toolbox.mirrored(call))
        if result.get("isError") is True:
            raise result_failure(result, kind, time.monotonic() - began)
        return result

    async def _with_session(self, call: Call, toolbox: Toolbox) -> JsonObject:
        if toolbox.handle is None:
            return call.arguments
        if toolbox.handle in call.arguments:
            raise InvalidArguments(f"The argument {toolbox.handle!r} names the gateway's session: leave it out")
        if self._session_id is None:
            # Carried through, since nobody could end a session whose name was lost on the way.
            await finish(self._create())
        return {**call.arguments, toolbox.handle: self._session_id}

    async def _create(self) -> None:
        try:
            made = await within(self._sessions.request(CREATE, {}), self._connect_timeout_s)
        except RpcFault as fault:
            raise rpc_failure(fault, CREATE, 0.0) from fault
        except ServerUnreachable as error:
            raise _gone(error) from error
        except Overdue as error:
            raise EpisodeLost(f"the gateway gave no session within {self._connect_timeout_s:g} s") from error
        if not isinstance(made.get("session_id"), str):
            raise BadReply("session_id", f"{type(made.get('session_id')).__name__}, not a string")
        self._session_id = made["session_id"]

    async def _list(self) -> Toolbox:
        tools: list[Tool] = []
        params: JsonObject | None = {}
        while params is not None:
            page = await self._request("tools/list", "tools/list", params)
            tools += [as_tool(tool) for tool in page.get("tools", ())]
            params = {"cursor": page["nextCursor"]} if isinstance(page.get("nextCursor"), str) else None
        self._toolbox = Toolbox(tools)
        return self._toolbox

    async def _request(
        self, kind: Kind, method: str, params: JsonObject, mirrored: Mapping[str, str] | None = None
    ) -> JsonObject:
        began = time.monotonic()
        try:
            return await self._peer.request(method, params, mirrored or {})
        except RpcFault as fault:
            raise rpc_failure(fault, kind, time.monotonic() - began) from fault
        except ServerUnreachable as error:
            raise _gone(error) from error

    async def _say_goodbye(self) -> None:
        try:
            if self._session_id is not None:
                await self._sessions.request(CLOSE, {"session_id": self._session_id})
        finally:
            await self._peer.end()


def _gone(error: ServerUnreachable) -> EpisodeLost:
    return EpisodeLost(f"the gateway at {error.url} cannot be reached any more ({error.reason}); nothing was sent")


def _checked(arguments: Mapping[str, Any]) -> JsonObject:
    """Raises TypeError or ValueError for what is not JSON, before anything is sent."""
    given = dict(arguments)
    json.dumps(given, allow_nan=False)
    return given


def _check_offered(call: Call, toolbox: Toolbox) -> None:
    if call.tool in toolbox:
        return
    if call.tool in (RESET, STATE):
        raise PermissionError(
            f'{call.tool} is not offered here: the environment is served with exposure = "agent", where only its operator '
            'controls the simulation. Its operator may serve it with exposure = "full"'
        )
    raise ToolFailed(call.tool, f"there is no such tool. Tools: {toolbox.names}", "tool_not_found")
