"""Any error → what an agent, a log and a program read of it. Pure, and the only place where errors are translated.

Failures that a model can act on are `isError` results; a few are faults of the protocol (`protocol_code`).
"""

from __future__ import annotations

from openenv_client.errors import EpisodeLost
from openenv_client.frames import JsonObject
from openenv_gateway.errors import UnknownTool
from openenv_gateway.mapping.blocks import text_block
from openenv_gateway.mapping.causes import DESCRIBE, stable_code, told_action, words
from openenv_gateway.mapping.content import Gallery
from openenv_gateway.mapping.cuts import cut, encode
from openenv_gateway.mapping.failure import Failure, error_data, failure_text
from openenv_gateway.mapping.notes import Notes, late_meta
from openenv_gateway.mapping.options import MappingOptions
from openenv_gateway.mapping.whole import JSON, Part, Whole, kept

__all__ = [
    "ERROR",
    "Failure",
    "error_data",
    "failure_of",
    "failure_result",
    "failure_text",
    "protocol_code",
    "reported_failure",
    "tool_failure",
]

ERROR = "openenv/error"
"""The key of the error data in an isError result's `_meta`."""

MAX_NOTES = 20_000
"""Bytes of the notes in a failure's text: a late outcome may hold a whole screen."""

_NO_NOTES, _DEFAULTS = Notes(), MappingOptions()
_CAUSE = "The gateway itself failed; what was sent to the environment may have been carried out."
_INTERNAL_NEXT = "Ask for the state before acting again. The operator finds the exception in the gateway's log."
_INTERNAL = Failure("INTERNAL_ERROR", _CAUSE, _CAUSE, False, _INTERNAL_NEXT)
_TRY_AGAIN = "Read the message, correct the call and try again; the episode goes on."
_NEXT = {
    "tool_not_found": "Call tools/list and use one of its names.",
    "invalid_args": "Correct the arguments and call again; the episode goes on.",
    "timeout": "The tool may still have been carried out: look at its effects before calling it again.",
}


def failure_of(error: Exception, *, action: JsonObject | None = None) -> Failure:
    """What `error` means to whoever called. `action` is what was sent, or would have been; it is told where it helps.

    An error of neither tree is INTERNAL_ERROR, and nothing of its text is told: whoever catches it logs it.
    """
    for kind in type(error).__mro__:
        if kind in DESCRIBE:
            return DESCRIBE[kind](error, told_action(action))
    return _INTERNAL


def tool_failure(error: JsonObject, action: JsonObject | None = None) -> Failure:
    """The failure of an MCP environment's tool call, from the `error` in its observation: {"error_type", "message"}."""
    kind, said = words(error.get("error_type", "")), words(error.get("message") or "no message")
    cause = f"The environment's tool call failed ({kind or 'no type'}): {said}"
    return Failure(stable_code(kind, "TOOL_ERROR"), said, cause, False, _NEXT.get(kind, _TRY_AGAIN), told_action(action))


def reported_failure(text: str, action: JsonObject | None = None) -> Failure:
    """The failure that a tool reported in its own content (`is_error`)."""
    said = words(text)
    return Failure("TOOL_ERROR", said, f"The tool reported an error: {said}", False, _TRY_AGAIN, told_action(action))


def protocol_code(failure: Failure) -> int | None:
    """The JSON-RPC error code of a failure that is a fault of the protocol; None for one that is an isError result."""
    return -32602 if failure.code == UnknownTool.code else None


def failure_result(
    failure: Failure, notes: Notes = _NO_NOTES, *, options: MappingOptions = _DEFAULTS, whole: Whole | None = None
) -> JsonObject:
    """The isError result: no structuredContent, since hosts that check outputSchema would show a schema error instead of this
    one. All is in one text; only pictures of a late outcome follow it. `notes` as in a result."""
    lines = [failure_text(failure)]
    if failure.code == EpisodeLost.code:
        lines += _lost(notes)
    gallery = Gallery()
    shown = _cut(gallery.take(notes.shown(options)), whole)
    lines += [f"{key}: {value if isinstance(value, str) else encode(value).decode()}" for key, value in shown.items()]
    meta = {**notes.meta(), **late_meta(notes.late, options), ERROR: error_data(failure)}
    return {"content": [text_block("\n".join(lines)), *gallery.blocks], "isError": True, "_meta": meta}


def _cut(shown: JsonObject, whole: Whole | None) -> JsonObject:
    body = encode(shown)
    return shown if len(body) <= MAX_NOTES else cut(shown, MAX_NOTES, kept(whole, Part(JSON, body)))


def _lost(notes: Notes) -> list[str]:
    what = [] if notes.episode is None else [f"episode {notes.episode}"]
    what += [] if notes.step is None else [f"{notes.step} step{'' if notes.step == 1 else 's'} in it"]
    return [f"Lost: {', '.join(what)}."] if what else []
