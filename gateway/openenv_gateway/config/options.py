"""The options of one environment, the same on the command line and in the file.

The published schema (`config.schema.json`, `$defs/environment`) says what each may be; the table here says where it lands in
EnvironmentSettings. A test holds the two, and the dataclasses' defaults, together.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, get_args

from openenv_gateway.config.sources import seen_from
from openenv_gateway.config.words import Part, fits, misfit
from openenv_gateway.mapping.options import MappingOptions
from openenv_gateway.settings import ContainerSettings, EnvironmentSettings, PoolSettings, Source, SourceKind, Timeouts
from openenv_gateway_schemas import load

Room = Literal["source", "container", "mapping", "timeouts", "pool", "environment"]

PLACES: Mapping[str, tuple[Room, str]] = MappingProxyType({
    "cwd": ("source", "cwd"),
    "app": ("source", "app"),
    "env_vars": ("source", "env_vars"),
    "memory": ("container", "memory"),
    "cpus": ("container", "cpus"),
    "pids": ("container", "pids"),
    "network": ("container", "network"),
    "read_only": ("container", "read_only"),
    "mounts": ("container", "mounts"),
    "container_port": ("container", "port"),
    "launch": ("source", "launch"),
    "swarm_init": ("source", "swarm_init"),
    "arguments": ("source", "arguments"),
    "start": ("source", "start"),
    "exposure": ("mapping", "exposure"),
    "reward": ("mapping", "reward"),
    "text": ("mapping", "text"),
    "schemas": ("mapping", "schemas"),
    "max_result_bytes": ("mapping", "max_result_bytes"),
    "max_tool_name": ("mapping", "max_tool_name"),
    "connect_timeout_s": ("timeouts", "connect_s"),
    "launch_timeout_s": ("timeouts", "launch_s"),
    "reset_timeout_s": ("timeouts", "reset_s"),
    "step_timeout_s": ("timeouts", "step_s"),
    "tool_timeout_s": ("timeouts", "tools"),
    "queue_timeout_s": ("timeouts", "queue_s"),
    "late_reply_s": ("timeouts", "late_reply_s"),
    "idle_timeout_s": ("timeouts", "idle_s"),
    "linger_s": ("timeouts", "linger_s"),
    "max_servers": ("pool", "max_servers"),
    "sessions_per_server": ("pool", "sessions_per_server"),
    "warm_servers": ("pool", "warm_servers"),
    "warm_sessions": ("pool", "warm_sessions"),
    "idle_server_s": ("pool", "idle_server_s"),
    "health_timeout_s": ("pool", "health_timeout_s"),
    "max_restarts": ("pool", "max_restarts"),
    "after_done": ("environment", "after_done"),
    "late_reply": ("environment", "late_reply"),
    "reset": ("environment", "reset"),
    "lane_queue": ("environment", "lane_queue"),
    "poll_after_s": ("environment", "poll_after_s"),
})
"""Option → the part of EnvironmentSettings and the field there."""

TAKEN_BY: Mapping[str, tuple[SourceKind, ...]] = MappingProxyType({
    "cwd": ("cmd", "uv"),
    "app": ("uv",),
    "env_vars": ("demo", "cmd", "uv", "docker", "hf", "swarm", "k8s", "py"),
    "memory": ("cmd", "uv", "docker", "hf", "swarm"),
    "cpus": ("docker", "hf", "swarm"),
    "pids": ("docker", "hf"),
    "network": ("docker", "hf"),
    "read_only": ("docker", "hf", "swarm"),
    "mounts": ("docker", "hf", "swarm"),
    "container_port": ("docker", "hf", "swarm"),
    "launch": ("hf",),
    "swarm_init": ("swarm",),
    "arguments": ("py",),
    "start": ("py",),
})
"""Options that mean something for some sources only."""

NUMBER = re.compile(r"[+-]?\d{1,30}(\.\d{1,30})?")
INTEGER = re.compile(r"[+-]?\d{1,18}")
BOOLEANS = MappingProxyType({"true": True, "false": False})


@cache
def parts() -> Mapping[str, Part]:
    """The schema of each option by name, `source` apart."""
    properties: dict[str, Part] = load("config")["$defs"]["environment"]["properties"]
    return MappingProxyType({name: part for name, part in properties.items() if name != "source"})


def is_table(option: str) -> bool:
    """Whether an option is a table, which only a file can hold."""
    return bool(parts()[option]["type"] == "object")


def from_text(option: str, text: str) -> Any:
    """The value of a flat option given as text. Raises ValueError, worded for the user, if it is not allowed."""
    part = parts()[option]
    value: Any = text
    if part["type"] == "boolean":
        value = BOOLEANS.get(text, text)
    if part["type"] == "integer" and INTEGER.fullmatch(text):
        value = int(text)
    if part["type"] == "number" and NUMBER.fullmatch(text):
        value = float(text)
    if not fits(part, value):
        raise ValueError(misfit(part, value))
    return value


def misplaced(source: Source, values: Mapping[str, Any]) -> dict[str, str]:
    """The options that this kind of source has no use for, each with the reason."""
    return {
        option: f"of no use for {source.kind} sources, only for {', '.join(kinds)}"
        for option, kinds in TAKEN_BY.items()
        if option in values and source.kind not in kinds
    }


def build(name: str, source: Source, values: Mapping[str, Any], folder: Path) -> EnvironmentSettings:
    """The settings of one environment. `values` are valid by the schema; paths in them are seen from `folder`."""
    fields: dict[Room, dict[str, Any]] = {room: {} for room in get_args(Room)}
    for option, value in values.items():
        room, field = PLACES[option]
        fields[room][field] = _seen(option, _settled(parts()[option], value), folder)
    return EnvironmentSettings(
        name=name,
        source=replace(source, container=ContainerSettings(**fields["container"]), **fields["source"]),
        mapping=MappingOptions(**fields["mapping"]),
        timeouts=Timeouts(**fields["timeouts"]),
        pool=PoolSettings(**fields["pool"]),
        **fields["environment"],
    )


def _seen(option: str, value: Any, folder: Path) -> Any:
    """The paths in a value of this option, seen from the folder."""
    if option == "cwd":
        return seen_from(folder, value)
    if option == "mounts":
        return MappingProxyType({inside: os.path.abspath(seen_from(folder, outside)) for inside, outside in value.items()})
    return value


def _settled(part: Part, value: Any) -> Any:
    """The value in the type that the dataclasses promise: TOML may write 20 for 20.0 and the other way round."""
    if part["type"] == "object":
        inner = part.get("additionalProperties", {})
        return MappingProxyType({key: _settled(inner, entry) if inner else entry for key, entry in value.items()})
    if part["type"] == "number":
        return float(value)
    return int(value) if part["type"] == "integer" else value
