"""The wire of `mode="simulation"`: OpenEnv's frames in one environment session, on `/ws`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from openenv_client.connection import Connection
from openenv_client.errors import ConnectFailed, EpisodeLost, LateReply, OpenEnvError, ReplyTimeout
from openenv_client.frames import JsonObject, Kind, answer_data
from openenv_client.results import Tool
from openenv_client.session import EnvironmentSession
from openenv_client.tool_replies import CALL_TOOL, LIST_TOOLS, called, listed
from openenv_client.urls import shown, websocket_url
from openenv_client.wire import WireOptions


async def open_wire(options: WireOptions) -> SessionWire:
    """Raises ConnectFailed. That the server has no free session is told by the first call."""
    try:
        connection = await Connection.open(
            options.base_url,
            connect_timeout_s=options.connect_timeout_s,
            max_message_bytes=options.max_message_bytes,
            headers=options.headers,
            ping_interval_s=options.ping_interval_s,
            ping_timeout_s=options.ping_timeout_s,
        )
    except OpenEnvError as error:
        raise ConnectFailed(shown(websocket_url(options.base_url)), error) from error
    return SessionWire(connection, options.late_reply_s)


class SessionWire:
    """A Wire over any EnvironmentSession.

    With `late_reply_s` a call that timed out or was cancelled leaves its reply owed: the next call waits for it that long
    first. A step then raises LateReply with that reply and is not sent; state answers and leaves the telling to the next step;
    reset drops it. Without, the session is over: its late reply could not be told from the next call's.
    """

    def __init__(self, session: EnvironmentSession, late_reply_s: float | None) -> None:
        self._session = session
        self._late_reply_s = late_reply_s
        self._given_up: str | None = None
        self._late: bytes | None = None
        self._late_kind: Kind = "step"

    def __repr__(self) -> str:
        return f"<SessionWire over {self._session!r}>"

    @property
    def is_over(self) -> bool:
        """See Wire."""
        return self._given_up is not None or not self._session.is_open

    async def reset(self, arguments: Mapping[str, Any], timeout_s: float) -> JsonObject:
        """See Wire. The last reply of the episode before is waited for, and dropped."""
        await self._settle()
        self._late = None
        return await self._ask("reset", arguments, timeout_s)

    async def step(self, action: Mapping[str, Any], timeout_s: float) -> JsonObject:
        """See Wire."""
        await self._settle()
        self._tell_what_came_late()
        return await self._ask("step", action, timeout_s)

    async def state(self, timeout_s: float) -> JsonObject:
        """See Wire."""
        await self._settle()
        return await self._ask("state", None, timeout_s)

    async def list_tools(self, timeout_s: float) -> list[Tool]:
        """See Wire. A step of its own, as OpenEnv's MCP environments take it."""
        return listed(await self.step(LIST_TOOLS, timeout_s))

    async def call_tool(self, name: str, arguments: Mapping[str, Any], timeout_s: float) -> Any:
        """See Wire. A step, with whatever reward the environment gives for it (see `EnvClient.step` to get it)."""
        action = {**CALL_TOOL, "tool_name": name, "arguments": dict(arguments)}
        return called(name, await self.step(action, timeout_s))

    async def close(self) -> None:
        """See Wire."""
        await self._session.close()

    async def _ask(self, kind: Kind, data: Mapping[str, Any] | None, timeout_s: float) -> JsonObject:
        try:
            raw = await self._session.exchange(kind, data, timeout_s)
        except (ReplyTimeout, asyncio.CancelledError) as unanswered:
            if self._session.owes and self._late_reply_s is None:
                self._given_up = _why(kind, unanswered)
            raise
        return answer_data(raw, kind)

    async def _settle(self) -> None:
        """Wait for the owed reply, if there is one, and keep it if it is an action's outcome."""
        if self._given_up is not None:
            raise EpisodeLost(self._given_up)
        owed = self._session.owes
        if owed is None:
            return
        try:
            raw = await self._session.collect(self._late_reply_s or 0.0)
        except ReplyTimeout as error:
            self._given_up = f"the reply to an earlier {owed} did not come, and not within another {error.seconds:g} s either"
            raise EpisodeLost(self._given_up) from error
        if owed != "state":
            self._late, self._late_kind = raw, owed

    def _tell_what_came_late(self) -> None:
        late, self._late = self._late, None
        if late is None:
            return
        try:
            payload = answer_data(late, self._late_kind)
        except OpenEnvError as error:
            raise LateReply(self._late_kind, None) from error
        raise LateReply(self._late_kind, payload)


def _why(kind: Kind, unanswered: BaseException) -> str:
    if isinstance(unanswered, ReplyTimeout):
        return f"{kind} was sent and not answered within {unanswered.seconds:g} s, so that its outcome is unknown"
    return f"{kind} was cancelled after it was sent, so that its outcome is unknown"
