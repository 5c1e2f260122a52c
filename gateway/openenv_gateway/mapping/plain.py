"""The text block of an observation that is one text (option text = "plain"). Pure."""

from __future__ import annotations

from typing import Any

from openenv_client.frames import JsonObject
from openenv_gateway.mapping import content
from openenv_gateway.mapping.cuts import encode


def plain_text(structured: JsonObject) -> str | None:
    """The observation's only text, then a line for each thing there is to tell (reward, done, notice, ...).

    None when the observation has no text, or more than one thing beside pictures: then JSON says it better.
    """
    observation: JsonObject = structured["observation"]
    substantive = [value for key, value in observation.items() if key != "metadata" and _says_something(value)]
    if len(substantive) != 1 or not isinstance(substantive[0], str):
        return None
    return "\n".join([substantive[0], *_error_lines(observation.get("metadata")), *_lines(structured)])


def _says_something(value: Any) -> bool:
    if isinstance(value, dict) and content.MARKER in value:
        return False
    return value is not None and value not in ("", [], {})


def _error_lines(metadata: Any) -> list[str]:
    error = metadata.get("error") if isinstance(metadata, dict) else None
    return [] if error is None else [f"error: {error if isinstance(error, str) else encode(error).decode()}"]


def _lines(structured: JsonObject) -> list[str]:
    silent = (None, False)
    told = {key: value for key, value in structured.items() if key != "observation" and all(value is not it for it in silent)}
    return [f"{key}: {value if isinstance(value, str) else encode(value).decode()}" for key, value in told.items()]
