"""The content of an MCP environment's tool result → MCP content blocks that every official model accepts. Pure.

Environments send what their fastmcp printed: snake or camel case, nulls for what is absent. Blocks stay one to one and in
order; what is no block, or one that agents cannot use (a link that only the environment could resolve), becomes text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from openenv_client.errors import BadReply
from openenv_client.frames import JsonObject
from openenv_gateway.mapping import encoded, signatures
from openenv_gateway.mapping.content import Gallery
from openenv_gateway.mapping.cuts import cap_text, encode
from openenv_gateway.mapping.replies import check_depth
from openenv_gateway.mapping.whole import TEXT, Part, Whole, kept

_ROLES = ("user", "assistant")
_LEAST_SHARE = 500
"""Bytes that every text block may have, however much the blocks before it took."""

_WORTH_UNPACKING = 1000
"""Characters from which a JSON text is searched for pictures."""


def text_block(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def content_blocks(content: list[Any]) -> list[JsonObject]:
    """One block per item of `content`, in order; empty texts, which models' services refuse, are left out."""
    return [block for block in map(_block, content) if block.get("text") != ""]


def unpack_texts(blocks: list[JsonObject], gallery: Gallery) -> list[JsonObject]:
    """The same blocks, with pictures taken out of texts that are one, or JSON with one in it: a tool that returns an object
    gets it printed into a text block, base64 and all."""
    return [_unpacked(block, gallery) for block in blocks]


def cap_blocks(blocks: list[JsonObject], limit: int, whole: Whole | None = None) -> list[JsonObject]:
    """The same blocks, whose texts and resources together keep to about `limit` bytes; a cut one says so in its last line, and
    goes whole to `whole`."""
    shown: list[JsonObject] = []
    left = limit
    for block in blocks:
        share = max(left, _LEAST_SHARE)
        if block["type"] == "resource" and len(encode(block)) > share:
            block = text_block(_resource_text(block["resource"], whole))
        if block["type"] == "text":
            block = {**block, "text": capped(block["text"], share, whole)}
            left -= len(block["text"].encode())
        shown.append(block)
    return shown


def capped(text: str, limit: int, whole: Whole | None = None) -> str:
    """The text within `limit` bytes, as `cuts.cap_text` has it; what is cut goes whole to `whole`."""
    body = text.encode()
    return text if len(body) <= limit else cap_text(text, limit, kept(whole, Part(TEXT, body)))


def _unpacked(block: JsonObject, gallery: Gallery) -> JsonObject:
    text = block.get("text")
    if not isinstance(text, str):
        return block
    value = _json_value(text) if len(text) >= _WORTH_UNPACKING and text[0] in "{[" else text
    known = len(gallery.blocks)
    taken = gallery.take(value)
    return block if len(gallery.blocks) == known else {**block, "text": encode(taken).decode()}


def _json_value(text: str) -> Any:
    """The value of a JSON text; the text itself if it is no JSON after all, or too deep to be walked through."""
    try:
        value = orjson.loads(text)
        check_depth(value)
    except (orjson.JSONDecodeError, BadReply):
        return text
    return value


def _block(item: Any) -> JsonObject:
    match item:
        case {"type": "text", "text": str(text)}:
            return {**text_block(text), **_extras(item)}
        case {"type": "image" | "audio" as kind, "data": str(data)}:
            return _media(kind, data, item)
        case {"type": "resource", "resource": {"uri": str(uri), "text": str(text)} as resource}:
            return {"type": "resource", "resource": {"uri": uri, "text": text, **_mime(resource)}, **_extras(item)}
        case {"type": "resource", "resource": {"uri": str(uri), "blob": str(blob)} as resource} if _is_base64(blob):
            return {"type": "resource", "resource": {"uri": uri, "blob": blob, **_mime(resource)}, **_extras(item)}
        case {"type": "resource_link", "uri": str(uri)}:
            return text_block(_link_text(item, uri))
        case str():
            return text_block(item)
    return text_block(encode(item).decode())


def _media(kind: str, data: str, item: Mapping[str, Any]) -> JsonObject:
    data = encoded.unwrapped(data)
    if len(data) > encoded.MAX_TEXT:
        return text_block(f"[{kind} of {len(data)} base64 characters, too large to show]")
    raw = encoded.decoded(data)
    mime = None if raw is None else _mime(item).get("mimeType") or signatures.mime_type(raw)
    if mime is None:
        return text_block(f"[{kind} of {len(data)} characters that are no base64, or of no known type]")
    return {"type": kind, "data": data, "mimeType": mime, **_extras(item)}


def _is_base64(text: str) -> bool:
    return encoded.decoded(text) is not None


def _mime(item: Mapping[str, Any]) -> JsonObject:
    mime = item.get("mimeType", item.get("mime_type"))
    return {"mimeType": mime} if isinstance(mime, str) else {}


def _extras(item: Mapping[str, Any]) -> JsonObject:
    extras: JsonObject = {}
    annotations = item.get("annotations")
    if isinstance(annotations, dict):
        extras["annotations"] = _annotations(annotations)
    meta = item.get("_meta", item.get("meta"))
    if isinstance(meta, dict):
        extras["_meta"] = meta
    return extras


def _annotations(annotations: JsonObject) -> JsonObject:
    told: JsonObject = {}
    match annotations.get("audience"):
        case [*audience] if audience and all(role in _ROLES for role in audience):
            told["audience"] = audience
    match annotations.get("priority"):
        case int() | float() as priority if type(priority) is not bool and 0 <= priority <= 1:
            told["priority"] = priority
    modified = annotations.get("lastModified", annotations.get("last_modified"))
    if isinstance(modified, str):
        told["lastModified"] = modified
    return told


def _link_text(item: Mapping[str, Any], uri: str) -> str:
    name, description = item.get("title") or item.get("name"), item.get("description")
    told = f"[resource {name}: {uri}]" if isinstance(name, str) else f"[resource {uri}]"
    return f"{told} {description}" if isinstance(description, str) else told


def _resource_text(resource: JsonObject, whole: Whole | None) -> str:
    if "text" in resource:
        return f"[resource {resource['uri']}]\n{resource['text']}"
    blob = resource["blob"]
    uri = kept(whole, Part(resource.get("mimeType", "application/octet-stream"), blob.encode(), is_blob=True))
    where = "too large to show" if uri is None else f"to be read at {uri}"
    return f"[resource {resource['uri']} of {len(blob)} base64 characters, {where}]"
