"""What the gateway says went wrong → this package's errors, so that user code catches the same in either mode. Pure.

The gateway's error data is described in its published schema `error_data`: a stable `code`, the `cause`, the environment's own
`message` where it said any, `next_step`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from openenv_client.errors import (
    CapacityReached,
    EnvironmentFault,
    EpisodeLost,
    FactoryFailed,
    InvalidArguments,
    LateReply,
    OpenEnvError,
    ReplyTimeout,
    SessionRefused,
)
from openenv_client.frames import JsonObject
from openenv_client.mcp.peer import RpcFault

ERROR: Final = "openenv/error"
LATE: Final = "openenv/late"

Make = Callable[[str, Mapping[str, Any]], OpenEnvError]
"""(the words, the error data) → the error."""


def failure(data: Mapping[str, Any], what: str, elapsed_s: float) -> OpenEnvError:
    """The error that this error data means. `what` was asked (reset, step, state), `elapsed_s` seconds ago."""
    code, cause = str(data.get("code", "UNKNOWN")), str(data.get("cause", "no cause given"))
    if code == ReplyTimeout.code:
        error: OpenEnvError = ReplyTimeout(what, round(elapsed_s, 1))
    else:
        error = _KINDS.get(code, _fault)(str(data.get("message", cause)), {**data, "code": code})
    if isinstance(data.get("next_step"), str):
        error.next_step = data["next_step"]
    return error


def late_reply(note: Mapping[str, Any]) -> LateReply:
    """The outcome of an earlier call, as the gateway tells it beside another's."""
    what = "reset" if note.get("tool") == "reset" else "step"
    if isinstance(note.get("observation"), dict):
        return LateReply(what, {key: note.get(key) for key in ("observation", "reward", "done")})
    late, told = LateReply(what, None), note.get("error")
    if isinstance(told, dict):
        late.__cause__ = EnvironmentFault(str(told.get("message")), str(told.get("code")))
    return late


def result_failure(result: JsonObject, what: str, elapsed_s: float) -> OpenEnvError:
    """The error that an isError result means."""
    told = result.get("_meta")
    meta: JsonObject = told if isinstance(told, dict) else {}
    data = meta.get(ERROR)
    if not isinstance(data, dict):
        texts = [str(block.get("text")) for block in result.get("content", ()) if isinstance(block, dict)]
        data = {"code": "TOOL_ERROR", "cause": "\n".join(texts) or "the tool reported an error without words"}
    if data.get("code") == "PREVIOUS_ACTION_LATE":
        note = meta.get(LATE)
        return late_reply(note if isinstance(note, dict) else {})
    return failure(data, what, elapsed_s)


def rpc_failure(fault: RpcFault, what: str, elapsed_s: float) -> Exception:
    """The error for a request that was answered by a JSON-RPC error or by a bare HTTP status."""
    if fault.status in (401, 403):
        return PermissionError(f"The gateway refused {what}: {fault.message}")
    if isinstance(fault.data, dict) and "code" in fault.data and "cause" in fault.data:
        return failure(fault.data, what, elapsed_s)
    if fault.status == 404 and fault.code != _METHOD_NOT_FOUND:
        return EpisodeLost(f"the gateway does not know this client's session any more ({fault.message})")
    if fault.status == 503:
        return SessionRefused(fault.message, "UNAVAILABLE", {})
    if fault.code is None and fault.status >= 500:
        return EpisodeLost(f"{what} was sent and answered by {fault.message}, so that its outcome is unknown")
    return EnvironmentFault(fault.message, f"MCP {fault.code if fault.code is not None else fault.status}")


def _fault(words: str, data: Mapping[str, Any]) -> OpenEnvError:
    return EnvironmentFault(words, data["code"], _errors(data))


def _invalid(words: str, data: Mapping[str, Any]) -> OpenEnvError:
    return InvalidArguments(words, data["code"], _errors(data))


def _refused(words: str, data: Mapping[str, Any]) -> OpenEnvError:
    refused = SessionRefused(words, data["code"], data)
    refused.retryable = data.get("retryable") is True
    return refused


def _lost(words: str, data: Mapping[str, Any]) -> OpenEnvError:
    return EpisodeLost(words.removeprefix("The episode is lost: "))


def _errors(data: Mapping[str, Any]) -> list[JsonObject]:
    errors = data.get("errors")
    return errors if isinstance(errors, list) else []


_METHOD_NOT_FOUND = -32601
_KINDS: Final[Mapping[str, Make]] = {
    "EPISODE_LOST": _lost,
    "UNKNOWN_SESSION": _lost,
    "SESSION_REQUIRED": _lost,
    "BAD_REPLY": _lost,
    "CAPACITY_REACHED": CapacityReached,
    "QUEUE_TIMEOUT": CapacityReached,
    "FACTORY_ERROR": FactoryFailed,
    "INVALID_ARGUMENTS": _invalid,
    "UNKNOWN_TOOL": _invalid,
    "SESSION_REFUSED": _refused,
    "SERVER_UNREACHABLE": _refused,
    "NOT_AN_ENVIRONMENT": _refused,
    "WEBSOCKET_REFUSED": _refused,
    "LAUNCH_FAILED": _refused,
    "LAUNCH_TIMEOUT": _refused,
    "PROVIDER_ERROR": _refused,
    "UNUSABLE_SCHEMA": _refused,
    "DRAINING": _refused,
}
"""By code. Any other is an error of the environment's, or of this one call: the session goes on."""
