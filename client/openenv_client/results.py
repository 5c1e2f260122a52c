"""What the client's calls return: results of steps, and tools."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

ObsT = TypeVar("ObsT")


@dataclass
class StepResult(Generic[ObsT]):
    """The outcome of one reset or step.

    `observation` is what the client's `_parse_result` made of the environment's observation; `reward` is None where the
    environment gives none (a reset, usually); `done` says that the episode is over; `metadata` is the environment's, None where
    its server sends none.
    """

    observation: ObsT
    reward: float | None = None
    done: bool = False
    metadata: dict[str, Any] | None = None


@dataclass(frozen=True)
class Tool:
    """One tool of an environment. `input_schema` is the JSON Schema of its arguments (an object)."""

    name: str
    description: str = ""
    input_schema: dict[str, Any] = field(default_factory=dict)
