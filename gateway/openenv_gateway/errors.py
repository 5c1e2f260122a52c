"""What can go wrong on our own side, as one tree beside `openenv_client.errors`.

    GatewayError
    ├── UnknownTool            a name that is not in tools/list (JSON-RPC -32602)
    ├── InvalidArguments       arguments that do not fit the tool's schema; the environment was not touched
    ├── UnknownHandle          a session_id that nobody may use (unknown, expired, or somebody else's)
    ├── HandleRequired         a call that names no lane where the protocol has no sessions
    ├── EpisodeOver            a step after done, with after_done = "error"
    ├── PreviousActionLate     an earlier action's outcome arrived; this one was not executed
    ├── StillOpening           an earlier call is still opening the lane's environment session
    ├── LaneBusy               too many calls wait in one lane
    ├── QueueTimeout           no environment session became free in time
    ├── Draining               the gateway is stopping and takes no new lanes
    ├── UnusableSchema         an environment's schema that cannot be shown or checked (told when its tools are built)
    └── ConfigError            all faults of a configuration at once

Every class carries `code`, `retryable` and `next_step` as the client's errors do; `mapping.failures` is the one place that
turns either tree into what an agent reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class GatewayError(Exception):
    """Base of the gateway's own errors. `str()` is one sentence that says what happened and why."""

    code: str = "GATEWAY_ERROR"
    retryable: bool = False
    next_step: str = "See the message."

    def __init__(self, message: str, *, next_step: str | None = None) -> None:
        super().__init__(message)
        if next_step is not None:
            self.next_step = next_step


class UnknownTool(GatewayError):
    """No tool of that name: JSON-RPC error -32602."""

    code = "UNKNOWN_TOOL"
    next_step = "Call tools/list and use one of its names."


class InvalidArguments(GatewayError):
    """Arguments that the tool's schema refuses. Nothing was sent to the environment. `errors` are the fields at fault, one
    object each, where they are known one by one."""

    code = "INVALID_ARGUMENTS"
    next_step = "Correct the arguments and call again; the environment was not touched."

    def __init__(self, message: str, *, errors: Sequence[Mapping[str, Any]] = (), next_step: str | None = None) -> None:
        super().__init__(message, next_step=next_step)
        self.errors = tuple(errors)


class UnknownHandle(GatewayError):
    """A session_id that is unknown, expired, or belongs to another principal (never told apart)."""

    code = "UNKNOWN_SESSION"
    next_step = "Call reset without session_id to start a new episode and use the session_id that it returns."


class HandleRequired(GatewayError):
    """A call that names no lane although the protocol revision has no sessions."""

    code = "SESSION_REQUIRED"
    next_step = "Call reset first and pass the session_id that it returns to every later call."


class EpisodeOver(GatewayError):
    """A step after the episode's end."""

    code = "EPISODE_OVER"
    next_step = "Call reset to start the next episode."


class PreviousActionLate(GatewayError):
    """The owed reply of an earlier call arrived; the present action was not executed."""

    code = "PREVIOUS_ACTION_LATE"
    retryable = True
    next_step = "Read the late outcome and decide again; this action was not executed."


class StillOpening(GatewayError):
    """An earlier call of the lane was given up while its environment session was being opened, and that is not done yet."""

    code = "STILL_OPENING"
    retryable = True
    next_step = "The environment is still starting: call again in a few seconds."


class LaneBusy(GatewayError):
    """One call is in flight and the lane's bounded queue is full."""

    code = "LANE_BUSY"
    retryable = True
    next_step = "Wait for the running calls of this session to finish, then call again."


class QueueTimeout(GatewayError):
    """No environment session became free before the deadline. `retry_after_s` are the seconds to wait; `active_sessions` and
    `max_sessions` how many there are and can be at once, None where that is not known."""

    code = "QUEUE_TIMEOUT"
    retryable = True
    next_step = "All environment sessions are in use: wait and call again, or raise max_servers."

    def __init__(
        self,
        message: str,
        *,
        retry_after_s: float,
        next_step: str | None = None,
        active_sessions: int | None = None,
        max_sessions: int | None = None,
    ) -> None:
        super().__init__(message, next_step=next_step)
        self.retry_after_s = retry_after_s
        self.active_sessions, self.max_sessions = active_sessions, max_sessions


class Draining(GatewayError):
    """The gateway is stopping: calls in flight finish, new lanes are refused."""

    code = "DRAINING"
    retryable = True
    next_step = "The gateway is shutting down: connect again when it is back."


class UnusableSchema(GatewayError):
    """An environment's JSON Schema that is malformed, refers elsewhere, is too deep or too big. Told when tools are built."""

    code = "UNUSABLE_SCHEMA"
    next_step = "Correct the schema in the environment's action or tool; the gateway checks it again when it starts."


class ConfigError(GatewayError):
    """One or more faults in the configuration, all of them in `faults`, each with its place."""

    code = "CONFIG_ERROR"
    next_step = "Correct what is listed and try again."

    def __init__(self, what: str, faults: Sequence[str]) -> None:
        super().__init__("\n".join([f"{what}: {len(faults)} fault{'s' if len(faults) != 1 else ''}", *faults]))
        self.faults = tuple(faults)
