"""The seam between the client and the protocols: what `EnvClient` asks of a wire, and which wire a mode gets.

`EnvClient` knows neither frames nor JSON-RPC. It knows a `Wire`: one environment session, opened by `open_wire` at connect, on
one event loop, used by one call at a time, closed once. `link.Link` keeps the wire, opens another when it is over, and decides
what happens to calls after an episode was lost; a wire only says that it is over and never plays on in another episode.

A wire for another protocol is a class with these members, made by an async function `open_wire(options) -> Wire` of its
module, and a line in `_WIRES`. Payloads are plain JSON objects in the shape that OpenEnv's own servers use, since users'
`_parse_result` and `_parse_state` read them:

    reset, step   {"observation": {...}, "reward": number | null, "done": bool[, "metadata": {...}]}
    state         the state object itself
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

from openenv_client.frames import JsonObject
from openenv_client.modes import Mode
from openenv_client.results import Tool


@dataclass(frozen=True)
class WireOptions:
    """All that a client was told about its connection. Seconds and bytes.

    `late_reply_s` is None unless the user asked that an episode survives a timeout: how long the next call then waits for the
    reply that is still owed. Pings concern WebSockets only.
    """

    base_url: str
    connect_timeout_s: float = 10.0
    message_timeout_s: float = 60.0
    max_message_bytes: int = 100 * 2**20
    ping_interval_s: float | None = 20.0
    ping_timeout_s: float | None = 20.0
    headers: Mapping[str, str] | None = None
    late_reply_s: float | None = None


class Wire(Protocol):
    """One environment session over one protocol.

    Every call raises, besides what it says itself: ReplyTimeout (sent, no answer within `timeout_s`), EpisodeLost (the session
    is gone, and the outcome of a call that was sent unknown), SessionRefused and its kinds (the server gave no session),
    EnvironmentFault (the environment's own error; the session goes on), BadReply (the answer is none). TypeError or ValueError:
    the arguments are not JSON; nothing was sent. Cancelled after sending, a call leaves the wire as a timeout does.
    """

    @property
    def is_over(self) -> bool:
        """Whether no further call can be made in this session: every call then raises, usually EpisodeLost with the reason.

        Looked at before every call. It must become true by itself when the far end goes away, and after a timeout or a
        cancellation whose late answer could not be told from the answer to the next call.
        """
        ...

    async def reset(self, arguments: Mapping[str, Any], timeout_s: float) -> JsonObject:
        """Start an episode. Raises PermissionError where the caller may not reset."""
        ...

    async def step(self, action: Mapping[str, Any], timeout_s: float) -> JsonObject:
        """Carry out one action. LateReply: an earlier action's outcome came instead; this one was not sent."""
        ...

    async def state(self, timeout_s: float) -> JsonObject:
        """The environment's state object. Raises PermissionError where the caller may not see it."""
        ...

    async def list_tools(self, timeout_s: float) -> list[Tool]:
        """The environment's tools. A failure is raised: an empty list means that there are none."""
        ...

    async def call_tool(self, name: str, arguments: Mapping[str, Any], timeout_s: float) -> Any:
        """What the tool returned. Raises ToolFailed when the tool did not do it."""
        ...

    async def close(self) -> None:
        """End the session, within about a second, whatever the far end does; may be called at any moment, also while a call
        waits, which then gets EpisodeLost. Cancelled, it cuts the connection at once."""
        ...


_WIRES = {Mode.SIMULATION: "openenv_client.simulation", Mode.PRODUCTION: "openenv_client.production"}


async def open_wire(mode: Mode, options: WireOptions) -> Wire:
    """Connect. Raises ConnectFailed; nothing is left open then, nor after a cancellation.

    The module is imported here and not with the client: websockets or httpx would double the time that the import takes, and a
    program pays for the protocol that it speaks.
    """
    open_it: Callable[[WireOptions], Awaitable[Wire]] = import_module(_WIRES[mode]).open_wire
    return await open_it(options)
