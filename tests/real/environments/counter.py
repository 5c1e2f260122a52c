"""Count to a target: the simplest environment that still has reward, done, a seed and something to mix up.

Deterministic: the same reset and actions give the same observations, rewards and states, but for `episode_id`. The board
shows the label and every amount of its own session, so an answer that belongs to another session is seen at once.
"""

from __future__ import annotations

import itertools
import os
import random
from typing import Any

from framework import serve
from openenv.core.env_server import Action, Environment, Observation, State
from pydantic import Field

SESSIONS = itertools.count(1)


class CounterAction(Action):
    """Add an amount to the counter."""

    amount: int = Field(..., ge=-10, le=10, description="How much to add; may be negative")
    remark: str | None = Field(default=None, max_length=200, description="Anything to remember with it")


class CounterObservation(Observation):
    """The counter after the action."""

    value: int = Field(default=0, description="Where the counter stands")
    target: int = Field(default=20, description="The episode is over when the counter reaches it")
    board: str = Field(default="", description="The session's label and all that it added, such as 'blue: 3+4=7 of 20'")
    session: int = Field(default=0, description="The server's number of this session; 0 if NUMBER_SESSIONS is 0")


class CounterState(State):
    """All that the counter knows."""

    value: int = 0
    target: int = 20
    label: str = ""
    resets: int = 0


class CounterEnvironment(Environment):
    """Add amounts until the counter reaches its target. A tenth of the amount is the reward, and 1 for reaching it."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__()
        self._session = next(SESSIONS) if os.environ.get("NUMBER_SESSIONS", "1") == "1" else 0
        self._state = CounterState()
        self._amounts: list[int] = []

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, target: int = 20, label: str = "", **_: Any
    ) -> CounterObservation:
        """Start at zero, or with a seed somewhere from 0 to 9."""
        start = 0 if seed is None else random.Random(seed).randrange(10)
        self._amounts = [start]
        self._state = CounterState(
            episode_id=episode_id, value=start, target=target, label=label, resets=self._state.resets + 1
        )
        return self._observe(None)

    def step(self, action: CounterAction, timeout_s: float | None = None, **_: Any) -> CounterObservation:
        self._amounts.append(action.amount)
        self._state.step_count += 1
        self._state.value += action.amount
        return self._observe(action.amount / 10 + (1.0 if self._state.value >= self._state.target else 0.0))

    @property
    def state(self) -> CounterState:
        return self._state

    def _observe(self, reward: float | None) -> CounterObservation:
        state = self._state
        return CounterObservation(
            value=state.value,
            target=state.target,
            board=f"{state.label}: {'+'.join(map(str, self._amounts))}={state.value} of {state.target}",
            session=self._session,
            reward=reward,
            done=state.value >= state.target,
            metadata={"steps": state.step_count} if state.step_count else {},
        )


app = serve(CounterEnvironment, CounterAction, CounterObservation)
