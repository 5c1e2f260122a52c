"""An environment of openenv-core 0.1.x, whose framework has dataclasses and HTTP only: it echoes, and counts its steps.

One environment for everybody, as that framework has it. `delay` makes a step slow.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from openenv_core.env_server import Action, Environment, Observation, State, create_app


@dataclass(kw_only=True)
class EchoAction(Action):
    """Say something."""

    message: str
    delay: float = 0.0


@dataclass(kw_only=True)
class EchoObservation(Observation):
    """What was said, and the number of the step."""

    echoed: str = ""
    n: int = 0


class EchoEnvironment(Environment):
    """Echoes; the reward is the length of what was said."""

    def __init__(self) -> None:
        super().__init__()
        self._state = State(episode_id="only", step_count=0)

    def reset(self) -> EchoObservation:
        self._state = State(episode_id="only", step_count=0)
        return EchoObservation(echoed="ready", reward=0.0)

    def step(self, action: EchoAction) -> EchoObservation:  # type: ignore[override]
        time.sleep(action.delay)
        self._state.step_count += 1
        return EchoObservation(echoed=action.message, n=self._state.step_count, reward=float(len(action.message)))

    @property
    def state(self) -> State:
        return self._state


app = create_app(EchoEnvironment(), EchoAction, EchoObservation)
