"""The result of an MCP environment's own tool → a CallToolResult. Pure.

On the wire a tool's result is one field of an observation, in the form that the server's fastmcp prints: snake or camel case.
The tool's content goes through one to one. Reward, done and notes, which MCP has no place for, are in structuredContent, and
in one more text block at the end when there is something to tell: hosts that read only text would miss them otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from openenv_client.frames import JsonObject, Observation
from openenv_gateway.mapping.assembly import cut_and_encoded, observation_members, observation_meta, without_media
from openenv_gateway.mapping.blocks import cap_blocks, content_blocks, text_block, unpack_texts
from openenv_gateway.mapping.content import Gallery
from openenv_gateway.mapping.cuts import cap_text, encode
from openenv_gateway.mapping.failures import ERROR, error_data, failure_text, reported_failure, tool_failure
from openenv_gateway.mapping.notes import DONE, REWARD, Notes, told_reward
from openenv_gateway.mapping.options import MappingOptions
from openenv_gateway.mapping.whole import Whole

_RESULT_KEYS = frozenset({"content", "structured_content", "structuredContent", "data", "is_error", "isError"})
_OUTCOME_FIELDS = ("result", "error")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a tool answered: its content, its value (structured content, else data; None without either), or its failure:
    `is_error` says that the tool reported one in its content, `error` that the call itself failed."""

    content: list[Any]
    value: Any = None
    is_error: bool = False
    error: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """One call's reply and how it is to be shown."""

    reply: Observation
    options: MappingOptions
    notes: Notes
    action: JsonObject | None = None
    whole: Whole | None = None


def outcome_of(observation: JsonObject) -> Outcome | None:
    """The tool's outcome in an observation, None when it has none."""
    match observation:
        case {"error": {"error_type": str()} as error}:
            return Outcome([], error=error)
        case {"result": dict() as result} if not _RESULT_KEYS.isdisjoint(result):
            return _parsed(result)
    return None


def tool_result(outcome: Outcome, call: Call) -> JsonObject:
    """The CallToolResult of a tool's outcome: `isError` with text only when the tool or the call failed."""
    if outcome.error is not None or outcome.is_error:
        return _failed(outcome, call)
    blocks = content_blocks(outcome.content)
    gallery = Gallery(len(blocks) or 1, blocks)
    texts = unpack_texts(blocks, gallery)
    value = _joined_text(blocks) if outcome.value is None else outcome.value
    members = {**_members(call, value), **call.notes.shown(call.options)}
    structured, text = cut_and_encoded(*without_media(members, gallery), call.options, call.whole)
    shown = cap_blocks(texts, call.options.max_result_bytes, call.whole) or [text_block(text)]
    tail = _tail(structured) if blocks else []
    meta = observation_meta(call.reply, call.options, call.notes)
    return {"content": [*shown, *gallery.blocks, *tail], "structuredContent": structured, "isError": False, "_meta": meta}


def _parsed(result: JsonObject) -> Outcome:
    content = result.get("content")
    structured = result.get("structured_content", result.get("structuredContent"))
    return Outcome(
        content=content if isinstance(content, list) else [],
        value=result.get("data") if structured is None else structured,
        is_error=result.get("is_error", result.get("isError")) is True,
    )


def _joined_text(blocks: list[JsonObject]) -> str | None:
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    return "\n".join(texts) if texts else None


def _members(call: Call, value: Any) -> JsonObject:
    members = observation_members(call.reply, call.options)
    others = {key: item for key, item in members["observation"].items() if key not in _OUTCOME_FIELDS and item is not None}
    return {**members, "observation": {"result": value, **others}}


def _tail(structured: JsonObject) -> list[JsonObject]:
    """One text block with what the tool's own content does not say; none when there is nothing of that kind."""
    observation = structured["observation"]
    others = {key: item for key, item in observation.items() if key not in ("result", "tool_name") and item != {}}
    told = {key: item for key, item in structured.items() if key not in ("observation", "done") and item is not None}
    if others:
        told = {"observation": others, **told}
    if not told and not structured["done"]:
        return []
    return [text_block(encode({**told, "done": structured["done"]}).decode())]


def _failed(outcome: Outcome, call: Call) -> JsonObject:
    limit = call.options.max_result_bytes
    if outcome.error is not None:
        failure = tool_failure(outcome.error, call.action)
        texts = [text_block(failure_text(failure))]
    else:
        blocks = [block for block in content_blocks(outcome.content) if block["type"] == "text"]
        texts = blocks or [text_block(encode({"result": outcome.value}).decode())]
        failure = reported_failure(cap_text(texts[0]["text"], 2000), call.action)
    members = {**_members(call, None), **call.notes.shown(call.options)}
    structured, _ = cut_and_encoded(members, encode(members), call.options, call.whole)
    meta = {**observation_meta(call.reply, call.options, call.notes), DONE: call.reply.done, ERROR: error_data(failure)}
    if call.options.reward != "hidden":
        meta[REWARD] = told_reward(call.reply.reward)
    return {"content": [*cap_blocks(texts, limit, call.whole), *_tail(structured)], "isError": True, "_meta": meta}
