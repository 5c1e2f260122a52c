"""What an environment server says about itself. Pure data; `discovery` reads it from a server."""

from __future__ import annotations

from dataclasses import dataclass, field

from openenv_client.frames import JsonObject


@dataclass(frozen=True, slots=True)
class Description:
    """One server's `/schema` and `/metadata`.

    `action`, `observation`, `state` are the JSON Schemas as served (`state` is only the base class: the real state has more
    fields). `reset` is the schema of reset's arguments, None when the server publishes none (upstream's never do).
    `name`, `summary` (metadata's description), `readme` and `version` are None when the server does not say. `schema_page` and
    `metadata_page` are the two documents as they came, the latter empty when there was no usable one.
    """

    action: JsonObject
    observation: JsonObject
    state: JsonObject = field(default_factory=dict)
    reset: JsonObject | None = None
    name: str | None = None
    summary: str | None = None
    readme: str | None = None
    version: str | None = None
    schema_page: JsonObject = field(default_factory=dict, compare=False, repr=False)
    metadata_page: JsonObject = field(default_factory=dict, compare=False, repr=False)
