"""Each class of both error trees → its Failure. Pure; one table says which class is put into words by which function.

What comes from an environment or a server's log is bounded, and made encodable: it may hold anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from openenv_client import errors as environment
from openenv_client.errors import BadReply
from openenv_client.frames import JsonObject
from openenv_gateway import errors as gateway
from openenv_gateway.mapping.cuts import MARKER, cap_text, cut
from openenv_gateway.mapping.failure import Failure
from openenv_gateway.mapping.replies import MAX_DEPTH, check_depth, plain_text, plain_value

MAX_ACTION, MAX_WORDS, MAX_LOG = 1000, 4000, 4000
"""Bytes of an action, of an environment's words and of a server's log that are told."""

MAX_ERRORS = 20
"""Field errors that are told one by one."""

RETRY_CAPACITY_S, RETRY_LANE_S, RETRY_DRAIN_S = 5.0, 1.0, 10.0
"""Seconds to wait where the error itself does not know better."""

Describe = Callable[[Any, JsonObject], Failure]
"""(error, {"action": ...} or {}) → Failure."""

_BARE = re.compile(r"\S*|(['\"]).*\1", re.DOTALL)  # one word, or the repr of a KeyError: says nothing without the action


def words(text: object) -> str:
    """Somebody else's text, encodable and bounded."""
    return cap_text(plain_text(str(text)), MAX_WORDS)


def stable_code(text: str, otherwise: str) -> str:
    """Somebody else's name for a failure in the form of our codes."""
    code = re.sub(r"[^A-Z0-9]+", "_", plain_text(text).upper()).strip("_")[:60]
    return code if code[:1].isalpha() else otherwise


def counts(error: environment.CapacityReached | gateway.QueueTimeout) -> JsonObject:
    """How many sessions there are and can be, as far as that is known."""
    told = {"active_sessions": error.active_sessions, "max_sessions": error.max_sessions}
    return {key: count for key, count in told.items() if count is not None}


def told_action(action: JsonObject | None) -> JsonObject:
    """{"action": ...} within MAX_ACTION, {} without one."""
    if action is None:
        return {}
    try:
        check_depth(action)
    except BadReply:
        return {"action": {MARKER: {"deeper_than_levels": MAX_DEPTH}}}
    return cut({"action": plain_value(action)}, MAX_ACTION, whole=("action",))


def _generic(error: Any, _: JsonObject) -> Failure:
    return _failure(error, words(error))


def _with_action(error: Any, action: JsonObject) -> Failure:
    return _failure(error, words(error), **action)


def _retry_after(seconds: float) -> Describe:
    return lambda error, _: _failure(error, words(error), retry_after_s=seconds)


def _queue_timeout(error: gateway.QueueTimeout, _: JsonObject) -> Failure:
    return _failure(error, words(error), retry_after_s=error.retry_after_s, **counts(error))


def _invalid_arguments(error: gateway.InvalidArguments, _: JsonObject) -> Failure:
    return _failure(error, words(error), **_errors(error.errors))


def _config_error(error: gateway.ConfigError, _: JsonObject) -> Failure:
    faults = [{"message": fault} for fault in error.faults]
    return _failure(error, words(error).partition("\n")[0], **_errors(faults))


def _fault(error: environment.EnvironmentFault, action: JsonObject) -> Failure:
    said = words(error.message)
    code = stable_code(error.code, "ENVIRONMENT_ERROR")
    if _BARE.fullmatch(said):
        cause = f"The environment answered with an error and said no more than: {said or 'nothing'}"
    else:
        cause = f"The environment answered with an error: {said}"
    return Failure(code, said, cause, error.retryable, error.next_step, {**_field_errors(error.errors), **action})


def _capacity(error: environment.CapacityReached, _: JsonObject) -> Failure:
    limit = "" if error.max_sessions is None else f": all {error.max_sessions} are in use"
    cause = f"The environment server has no free session{limit}. Nothing was sent."
    data = {"retry_after_s": RETRY_CAPACITY_S, **counts(error)}
    return Failure(error.code, words(error.message), cause, True, error.next_step, data)


def _refused(error: environment.SessionRefused, _: JsonObject) -> Failure:
    said = words(error.message)
    what = "could not build its environment" if isinstance(error, environment.FactoryFailed) else "refused a session"
    cause = f"The environment server {what}: {said.rstrip('.')}. Nothing was sent."
    log = {"log": _last_lines(error.log)} if isinstance(error, environment.FactoryFailed) and error.log else {}
    return Failure(stable_code(error.code, "SESSION_REFUSED"), said, cause, error.retryable, error.next_step, log)


def _timeout(error: environment.ReplyTimeout, action: JsonObject) -> Failure:
    late = "If the reply still comes, the next call of this session tells it; it is never taken for another's answer"
    return _failure(error, f"{words(error)}. {late}.", **action)


def _launch(error: environment.LaunchFailed, _: JsonObject) -> Failure:
    log = {"log": _last_lines(error.log)} if error.log else {}
    return _failure(error, words(f"Launching {error.what} failed: {error.reason}"), **log)


def _failure(error: Any, cause: str, **details: Any) -> Failure:
    cause = cause or type(error).__name__
    return Failure(error.code, cause, cause, error.retryable, error.next_step, details)


def _field_errors(errors: Iterable[Any]) -> JsonObject:
    """Pydantic's error objects (`loc`, `msg`, `input`) as path, message and what was found there."""
    told = []
    for error in errors:
        if not isinstance(error, Mapping):
            told.append({"message": error})
            continue
        loc = error.get("loc")
        path = ".".join(str(part) for part in loc) if isinstance(loc, (list, tuple)) else ""
        found = {"found": error["input"]} if "input" in error else {}
        told.append({"path": path, "message": error.get("msg", "not valid"), **found})
    return _errors(told)


def _errors(errors: Iterable[Mapping[str, Any]]) -> JsonObject:
    told = [told_action(dict(error))["action"] for error in list(errors)[:MAX_ERRORS]]
    return {"errors": told} if told else {}


def _last_lines(log: str) -> str:
    raw = plain_text(log.rstrip()).encode()
    if len(raw) <= MAX_LOG:
        return raw.decode()
    tail = raw[-MAX_LOG:].decode(errors="ignore")
    return f"[cut: the last {MAX_LOG} of {len(raw)} bytes]\n{tail.partition(chr(10))[2] or tail}"


DESCRIBE: Mapping[type, Describe] = MappingProxyType(
    {
        environment.OpenEnvError: _generic,
        environment.EnvironmentFault: _fault,
        environment.CapacityReached: _capacity,
        environment.SessionRefused: _refused,
        environment.ReplyTimeout: _timeout,
        environment.BadReply: _with_action,
        environment.LaunchFailed: _launch,
        gateway.GatewayError: _generic,
        gateway.InvalidArguments: _invalid_arguments,
        gateway.PreviousActionLate: _with_action,
        gateway.QueueTimeout: _queue_timeout,
        gateway.LaneBusy: _retry_after(RETRY_LANE_S),
        gateway.Draining: _retry_after(RETRY_DRAIN_S),
        gateway.ConfigError: _config_error,
    }
)
"""By class; a class that is not listed is described as its nearest base."""
