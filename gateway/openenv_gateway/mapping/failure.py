"""One failure in words, and its two forms: a text for people and models, error data for programs. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from openenv_client.frames import JsonObject
from openenv_gateway.mapping.cuts import encode


@dataclass(frozen=True, slots=True)
class Failure:
    """What happened, why, and what to do next.

    `code` is stable, `[A-Z][A-Z0-9_]*`. `message` are the environment's own words where it said any, else the cause again.
    `details` are the optional members of the error data: retry_after_s, errors, action, log.
    """

    code: str
    message: str
    cause: str
    retryable: bool
    next_step: str
    details: JsonObject = field(default_factory=dict)


def error_data(failure: Failure) -> JsonObject:
    """The program's form, by `error_data.schema.json`: `error.data`, and `_meta` of an isError result."""
    data: JsonObject = {
        "code": failure.code,
        "retryable": failure.retryable,
        "cause": failure.cause,
        "next_step": failure.next_step,
    }
    if failure.message != failure.cause:
        data["message"] = failure.message
    return {**data, **failure.details}


def failure_text(failure: Failure) -> str:
    """The form for a model, a log and a record: code and cause, what belongs to it, next step."""
    details = failure.details
    lines = [f"{failure.code}: {failure.cause}"]
    lines += [f"- {encode(fault).decode()}" for fault in details.get("errors", ())]
    if "action" in details:
        lines.append(f"Action: {encode(details['action']).decode()}")
    if "log" in details:
        lines.append(f"Last lines of the server's log:\n{details['log']}")
    if "retry_after_s" in details:
        lines.append(f"Try again in {details['retry_after_s']:g} s.")
    return "\n".join([*lines, f"Next: {failure.next_step}"])
