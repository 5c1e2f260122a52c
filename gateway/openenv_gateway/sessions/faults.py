"""Which replies are failures of the environment. Pure."""

from __future__ import annotations

from openenv_client.errors import BadReply, EnvironmentFault
from openenv_client.frames import ErrorFrame, Kind, Observation, Reply, State
from openenv_gateway.mapping.results import parse_frame

RESET_FAILED = "RESET_FAILED"
RESET_NEXT = (
    "No new episode was started: correct the arguments of reset, if the message asks for it, and call it again; "
    "else the operator finds the reason in the environment's log."
)


def read_reply(raw: str | bytes, kind: Kind) -> Reply:
    """The reply in one frame that answers a request of `kind`. Raises BadReply.

    Some environments report that they could not be reset in an ordinary observation, done at once and with an error in its
    metadata: that is read as the error frame that it is.
    """
    reply = parse_frame(raw)
    if not isinstance(reply, (ErrorFrame, State if kind == "state" else Observation)):
        raise BadReply("type", f"that of a reply to something else than {kind}")
    if kind == "reset" and isinstance(reply, Observation) and reply.done:
        metadata = reply.metadata or reply.observation.get("metadata")
        error = metadata.get("error") if isinstance(metadata, dict) else None
        if isinstance(error, str) and error:
            return ErrorFrame(error, RESET_FAILED, {"message": error, "code": RESET_FAILED})
    return reply


def require_answer(reply: Reply, kind: Kind) -> Observation | State:
    """The reply, if it is none of a failure. Raises EnvironmentFault, whose next step fits the request."""
    if not isinstance(reply, ErrorFrame):
        return reply
    fault: EnvironmentFault = reply.as_exception()
    if kind == "reset":
        fault.next_step = RESET_NEXT
    raise fault
