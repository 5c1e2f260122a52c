"""Text → the picture or sound that it holds as base64, bare or in a data URI. Pure."""

from __future__ import annotations

import base64

from openenv_client.frames import JsonObject
from openenv_gateway.mapping import signatures

MIN_TEXT = 44
"""Characters. The smallest real picture (a GIF of one pixel) has more; shorter texts are not looked at."""

MAX_TEXT = 8 * 2**20
"""Characters. More than any host shows; longer texts stay data, and are cut like data."""

# What the signatures look like in base64: PNG, JPEG, GIF, RIFF (WebP and WAV), ID3, an MP3 frame (11 set bits).
FIRST_LETTERS = ("iVBORw0KGgo", "/9j/", "R0lGOD", "UklGR", "SUQz", "//", "/+")
DATA_URI = "data:"


def media_block(text: str) -> JsonObject | None:
    """The ImageContent or AudioContent for a text that is a whole base64 picture or sound, else None."""
    if not MIN_TEXT <= len(text) <= MAX_TEXT:
        return None
    payload = text
    if text.startswith(DATA_URI):
        _, found, payload = text.partition(";base64,")
        if not found:
            return None
    if not payload.startswith(FIRST_LETTERS):
        return None
    return block_of(payload)


def block_of(payload: str) -> JsonObject | None:
    """The content block for a base64 payload without a prefix, None when it does not decode to a picture or sound."""
    payload = unwrapped(payload)
    data = decoded(payload)
    mime = None if data is None else signatures.mime_type(data)
    if mime is None:
        return None
    return {"type": mime.partition("/")[0], "data": payload, "mimeType": mime}


def unwrapped(payload: str) -> str:
    """The payload without the line breaks that `base64.encodebytes` puts in."""
    return payload.replace("\r", "").replace("\n", "") if "\n" in payload else payload


def decoded(payload: str) -> bytes | None:
    """The bytes of strict, padded base64; None for anything else."""
    try:
        return base64.b64decode(payload, validate=True)
    except ValueError:  # binascii.Error, or a letter beyond ASCII
        return None
