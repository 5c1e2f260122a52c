"""The choices that an operator makes about how one environment is shown to agents. Plain values, checked in `config`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Exposure = Literal["full", "agent"]
RewardPlace = Literal["visible", "meta", "hidden"]
TextStyle = Literal["json", "plain"]
SchemaStyle = Literal["portable", "native"]


@dataclass(frozen=True, slots=True)
class MappingOptions:
    """How one environment is shown.

    `exposure`: "full" gives agents reset and state; "agent" neither (OpenEnv's rule that a trained agent must not control
    the simulation), but `observe`. `reward`: where the agent may see the reward: in structuredContent, in `_meta`, nowhere.
    `text`: the first text block is the JSON of structuredContent, or the observation's one text. `max_result_bytes`: size
    above which the largest fields are cut. `max_tool_name`: characters (hosts add prefixes; their limit is 64).
    `schemas`: those of tools, in the form that every host reads, or as the environment gives them.
    """

    exposure: Exposure = "full"
    reward: RewardPlace = "visible"
    text: TextStyle = "json"
    max_result_bytes: int = 100_000
    max_tool_name: int = 40
    schemas: SchemaStyle = "portable"
