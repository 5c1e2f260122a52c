"""What the gateway has to tell an agent beside the environment's own answer. Pure."""

from __future__ import annotations

import math
from typing import NamedTuple

from openenv_client.frames import JsonObject
from openenv_gateway.mapping.cuts import cap_text
from openenv_gateway.mapping.options import MappingOptions
from openenv_gateway.mapping.replies import number_name

REWARD, LATE_REWARD, DONE, METADATA = "openenv/reward", "openenv/late_reward", "openenv/done", "openenv/metadata"
"""Keys in a result's `_meta`, beside those of `Notes.meta`."""

_LATE_MESSAGE_BYTES = 2000


class Notes(NamedTuple):
    """Remarks on one result.

    `session_id`: the lane's handle, told when set. `notice`: one sentence about this call. `late`: the outcome of an earlier
    action whose caller had given up: {"tool", "action", "observation", "reward", "done"}, or "error" or "state" in their
    place. `episode`, `step`, `lane` go to `_meta` as openenv/episode, openenv/step, openenv/session.
    """

    session_id: str | None = None
    notice: str | None = None
    late: JsonObject | None = None
    episode: str | None = None
    step: int | None = None
    lane: str | None = None

    def meta(self) -> JsonObject:
        """What is for programs, not for the model."""
        told: JsonObject = {}
        if self.episode is not None:
            told["openenv/episode"] = self.episode
        if self.step is not None:
            told["openenv/step"] = self.step
        if self.lane is not None:
            told["openenv/session"] = self.lane
        return told

    def shown(self, options: MappingOptions) -> JsonObject:
        """What the agent reads, as members of structuredContent; empty when there is nothing to tell."""
        told: JsonObject = {}
        if self.session_id is not None:
            told["session_id"] = self.session_id
        if self.notice is not None:
            told["notice"] = self.notice
        if self.late is not None:
            told["late"] = late_shown(self.late, options)
        return told


def late_shown(late: JsonObject, options: MappingOptions) -> JsonObject:
    """A late outcome as the agent may see it: rewards by the operator's choice, its observation's duplicates dropped."""
    shown = {key: value for key, value in late.items() if key not in ("reward", "observation", "error")}
    if isinstance(late.get("observation"), dict):
        shown["observation"] = observation_shown(late["observation"], late.get("reward"), late.get("done"), options)
    if "reward" in late and options.reward == "visible":
        shown["reward"] = finite(late["reward"])
    if isinstance(late.get("error"), dict):
        shown["error"] = {**late["error"], "message": cap_text(str(late["error"].get("message", "")), _LATE_MESSAGE_BYTES)}
    return shown


def late_meta(late: JsonObject | None, options: MappingOptions) -> JsonObject:
    """The reward of a late outcome for `_meta`, if that is where rewards go."""
    if late is None or "reward" not in late or options.reward != "meta":
        return {}
    return {LATE_REWARD: told_reward(late["reward"])}


def observation_shown(observation: JsonObject, reward: object, done: object, options: MappingOptions) -> JsonObject:
    """The observation without its copies of reward and done (old servers repeat them there); itself, if it has none. Where the
    agent may not see the reward, an observation's own `reward` is dropped too, whatever it says."""
    if "reward" not in observation and "done" not in observation:
        return observation
    hide = options.reward != "visible"
    return {
        key: value
        for key, value in observation.items()
        if not (key == "reward" and (hide or _same(value, reward))) and not (key == "done" and _same(value, done))
    }


def finite(reward: float | None) -> float | None:
    """The reward where JSON has a number for it, else None (and `told_reward` tells it)."""
    return reward if reward is None or math.isfinite(reward) else None


def told_reward(reward: float | None) -> float | str | None:
    """The reward, a non-finite one by its name."""
    return reward if reward is None or math.isfinite(reward) else number_name(reward)


def _same(copy: object, original: object) -> bool:
    if isinstance(original, float):
        original = told_reward(original)  # inside an observation, parse_frame has put names for non-finite numbers
    return copy is None or (copy == original and isinstance(copy, bool) == isinstance(original, bool))
