"""Draw shapes: an action that is a union of variants at the top level.

The framework asks an action class for `model_validate` and `model_json_schema` only, so a pydantic RootModel over a union
serves as one. `plain_app` leaves the discriminator out: its variants are told apart by their fields.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from framework import serve
from openenv.core.env_server import Action, Environment, Observation, State
from pydantic import Field, RootModel


class DrawCircle(Action):
    """Draw a circle."""

    kind: Literal["circle"] = "circle"
    radius: float = Field(..., gt=0, description="Its radius")


class DrawRectangle(Action):
    """Draw a rectangle."""

    kind: Literal["rectangle"] = "rectangle"
    width: float = Field(..., gt=0, description="Its width")
    height: float = Field(..., gt=0, description="Its height")


class Finish(Action):
    """Stop drawing."""

    kind: Literal["finish"] = "finish"
    remark: str | None = Field(default=None, description="A last word")


class Paint(Action):
    """Paint in one colour."""

    colour: Literal["red", "green", "blue"] = Field(..., description="The colour")


class Erase(Action):
    """Erase the latest shapes."""

    count: int = Field(..., ge=1, description="How many")


class ShapesAction(RootModel[Annotated[DrawCircle | DrawRectangle | Finish, Field(discriminator="kind")]]):
    """One thing to do, told apart by its kind."""


class PlainShapesAction(RootModel[Paint | Erase]):
    """One thing to do, told apart by its fields."""


class ShapesObservation(Observation):
    """What has been drawn."""

    shapes: list[str] = Field(default_factory=list, description="All that was drawn, oldest first")
    area: float = Field(default=0.0, description="The area of all shapes together")


class ShapesEnvironment(Environment):
    """Draw shapes until you finish. The reward is the area of the shape that was drawn."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__()
        self._state = State()
        self._shapes: list[tuple[str, float]] = []

    def reset(self, seed: int | None = None, episode_id: str | None = None, **_: Any) -> ShapesObservation:
        self._state = State(episode_id=episode_id)
        self._shapes = []
        return self._observe(reward=None, done=False)

    def step(
        self, action: ShapesAction | PlainShapesAction, timeout_s: float | None = None, **_: Any
    ) -> ShapesObservation:
        self._state.step_count += 1
        match action.root:
            case DrawCircle(radius=radius):
                return self._draw(f"circle {radius:g}", math.pi * radius**2)
            case DrawRectangle(width=width, height=height):
                return self._draw(f"rectangle {width:g}x{height:g}", width * height)
            case Paint(colour=colour):
                return self._draw(f"paint {colour}", 1.0)
            case Erase(count=count):
                del self._shapes[-count:]
        return self._observe(reward=0.0, done=isinstance(action.root, Finish))

    @property
    def state(self) -> State:
        return self._state

    def _draw(self, name: str, area: float) -> ShapesObservation:
        self._shapes.append((name, area))
        return self._observe(reward=area, done=False)

    def _observe(self, reward: float | None, done: bool) -> ShapesObservation:
        names, area = [name for name, _ in self._shapes], sum(area for _, area in self._shapes)
        return ShapesObservation(shapes=names, area=area, reward=reward, done=done)


app = serve(ShapesEnvironment, ShapesAction, ShapesObservation)
plain_app = serve(ShapesEnvironment, PlainShapesAction, ShapesObservation)
