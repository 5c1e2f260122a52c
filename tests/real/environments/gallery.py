"""Walk through pictures: every form in which real environments put a picture or sound into an observation."""

from __future__ import annotations

import base64
from typing import Any

import pictures
from framework import serve
from openenv.core.env_server import Action, Environment, Observation, State
from pydantic import Field

HEIGHT, WIDTH = 8, 12


class GalleryAction(Action):
    """Look at a picture."""

    number: int = Field(..., ge=0, le=99, description="Which one")
    size: int = Field(default=1, ge=1, le=32, description="Enlarges the picture that many times in both directions")


class GalleryObservation(Observation):
    """One picture, four times, and a sound."""

    number: int = Field(default=0, description="Which picture this is")
    screen: list[int] = Field(default_factory=list, description="The picture as a flat list of numbers from 0 to 255")
    screen_shape: list[int] = Field(default_factory=list, description="Its height, width and channels")
    frame: list[list[list[int]]] = Field(default_factory=list, description="The picture as rows of cells of numbers")
    pixels: str = Field(default="", description="The picture as a PNG file in base64")
    images: list[str] = Field(default_factory=list, description="This picture and the next as PNG files in base64")
    thumbnail: str = Field(default="", description="The picture as a data URI")
    sound: str = Field(default="", description="A sound as a WAV file in base64")


class GalleryEnvironment(Environment):
    """Look at pictures. There is no reward, and no end."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__()
        self._state = State()

    def reset(self, seed: int | None = None, episode_id: str | None = None, **_: Any) -> GalleryObservation:
        self._state = State(episode_id=episode_id)
        return observe(seed or 0, 1)

    def step(self, action: GalleryAction, timeout_s: float | None = None, **_: Any) -> GalleryObservation:
        self._state.step_count += 1
        return observe(action.number, action.size)

    @property
    def state(self) -> State:
        return self._state


def observe(number: int, size: int) -> GalleryObservation:
    """The observation of one picture."""
    height, width = HEIGHT * size, WIDTH * size
    rows = pictures.rows(height, width, number)
    this, following = (base64.b64encode(pictures.png(height, width, n)).decode() for n in (number, number + 1))
    return GalleryObservation(
        number=number,
        screen=[value for row in rows for cell in row for value in cell],
        screen_shape=[height, width, 3],
        frame=rows,
        pixels=this,
        images=[this, following],
        thumbnail=f"data:image/png;base64,{this}",
        sound=base64.b64encode(pictures.wav(64)).decode(),
    )


app = serve(GalleryEnvironment, GalleryAction, GalleryObservation)
