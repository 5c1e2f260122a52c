"""The recorded schemas and transcripts of real environments in `tests/catalog`, as values for tests.

Everything returned is freshly parsed: a test may change what it gets. An environment that published no schema
(`calendar_env`, `old_server_0.1.1`) is in `environments()` but not in `described()`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from openenv_client.description import Description
from openenv_client.frames import JsonObject

CATALOG = Path(__file__).parents[2] / "catalog"

Part = Literal["schema", "metadata", "health", "summary", "ws_transcript", "http_transcript"]


class NotRecorded(LookupError):
    """The catalog has no such environment, or not that part of it."""


class Exchange(NamedTuple):
    """One request frame and the reply that came to it, as JSON objects; `label` is the recorder's word for it."""

    label: str
    send: JsonObject
    recv: JsonObject


def environments() -> list[str]:
    """The names of all recorded environments, sorted."""
    return sorted(folder.name for folder in CATALOG.iterdir() if folder.is_dir())


def described() -> list[str]:
    """The names of those that published an action schema, sorted."""
    return [name for name in environments() if "action" in load(name, "schema")]


def load(env: str, part: Part) -> Any:
    """One recorded file, parsed. Raises NotRecorded for a file that is not there."""
    return json.loads(_text(env, part))


def description(env: str) -> Description:
    """What discovery reads from that server. Raises NotRecorded for one that published no schema."""
    schema, metadata = load(env, "schema"), load(env, "metadata")
    if "action" not in schema:
        raise NotRecorded(f"{env} published no schema: its /schema answered {schema}")
    return Description(
        action=schema["action"],
        observation=schema["observation"],
        state=schema["state"],
        reset=schema.get("reset"),
        name=metadata.get("name"),
        summary=metadata.get("description"),
        readme=metadata.get("readme_content"),
        version=metadata.get("version"),
    )


def exchanges(env: str) -> list[Exchange]:
    """Every recorded pair of a JSON object sent over `/ws` and the frame that answered it, malformed requests included."""
    return [
        Exchange(entry["label"], entry["send"], entry["recv"])
        for entry in _entries(env)
        if isinstance(entry.get("send"), dict) and isinstance(entry.get("recv"), dict)
    ]


def steps(env: str) -> list[Exchange]:
    """The exchanges whose request is a step with an action; their replies are observation or error frames."""
    return [pair for pair in exchanges(env) if pair.send.get("type") == "step" and "data" in pair.send]


def replies(env: str) -> list[JsonObject]:
    """Every frame that the server sent over `/ws`, unsolicited ones and refusals of a second connection included."""
    frames = [entry["recv"] for entry in _entries(env) if entry.get("recv")]
    return [json.loads(frame) if isinstance(frame, str) else frame for frame in frames]


def observations(env: str) -> list[JsonObject]:
    """The `data` of every observation frame among the replies: observation, reward, done and perhaps metadata."""
    return [frame["data"] for frame in replies(env) if frame.get("type") == "observation"]


def _entries(env: str) -> Iterator[dict[str, Any]]:
    if env not in environments():
        raise NotRecorded(f"{env} is not in the catalog; recorded are {', '.join(environments())}")
    if not (CATALOG / env / "ws_transcript.json").is_file():
        return  # git_env was described but never played
    for entry in load(env, "ws_transcript"):
        yield entry
        yield from entry.get("events", ())


@cache
def _text(env: str, part: Part) -> str:
    path = CATALOG / env / f"{part}.json"
    if not path.is_file():
        raise NotRecorded(f"{env} has no {part}.json in the catalog; recorded are {', '.join(environments())}")
    return path.read_text("utf-8")
