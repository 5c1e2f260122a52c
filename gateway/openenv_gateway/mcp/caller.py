"""Who is calling, as far as the protocol can tell: what decides which lane a call plays on."""

from __future__ import annotations

from typing import NamedTuple

from openenv_gateway.errors import HandleRequired
from openenv_gateway.mapping.tools import Handles, ToolKind
from openenv_gateway.mcp.inflight import InFlight
from openenv_gateway.mcp.revisions import Revision
from openenv_gateway.mcp.sessions import McpSession
from openenv_gateway.sessions.environment import Environment
from openenv_gateway.sessions.lane import Lane
from openenv_gateway.sessions.phases import Phase

ANONYMOUS = "anonymous"


class Caller(NamedTuple):
    """One request's caller.

    `session`: the MCP session of the handshake era (also one stdio process); `lane_name`: NAME of `?session=NAME`;
    neither: revision 2026-07-28, where the lane is named by a handle in the arguments. `request`: the running request
    that this is, None where nobody can cancel it or listen to it.
    """

    revision: Revision
    principal: str = ANONYMOUS
    session: McpSession | None = None
    lane_name: str | None = None
    request: InFlight | None = None

    @property
    def handles(self) -> Handles:
        """Whether the tools that this caller sees take a handle."""
        if self.lane_name is not None or (self.session is not None and self.session.is_connection):
            return Handles.NONE
        return Handles.OPTIONAL if self.session is not None else Handles.REQUIRED


def lane_of(caller: Caller, environment: Environment, kind: ToolKind, handle: str | None) -> Lane:
    """The lane on which this call plays (design: "who is the same agent?").

    A handle in the arguments wins; then `?session=NAME`; then the MCP session's own lane; else `reset` (or `observe`, where
    agents may not reset) opens a new one. Raises UnknownHandle, HandleRequired, Draining.
    """
    if handle is not None:
        lane = environment.lanes.by_handle(handle, caller.principal)
        if caller.session is not None:
            caller.session.adopt(lane)
        return lane
    if caller.lane_name is not None:
        return environment.lanes.named(caller.principal, caller.lane_name)
    if caller.session is not None:
        return _session_lane(caller.session, environment, caller.principal)
    if kind is (ToolKind.OBSERVE if environment.settings.mapping.exposure == "agent" else ToolKind.RESET):
        return environment.lanes.new(caller.principal)
    raise _handle_required(environment)


def _session_lane(session: McpSession, environment: Environment, principal: str) -> Lane:
    lane = session.lane
    if lane is None or lane.phase is Phase.CLOSED:
        lane = environment.lanes.new(principal)
        session.adopt(lane)
    return lane


def _handle_required(environment: Environment) -> HandleRequired:
    opener = "observe" if environment.settings.mapping.exposure == "agent" else "reset"
    return HandleRequired(
        "This call names no session, and this protocol revision has none of its own",
        next_step=(
            f"Call {opener} first and pass the session_id that it returns to every later call; "
            "or connect with ?session=NAME in the URL."
        ),
    )
