"""Which arrays are pictures, and that the PNG has the very pixels of the array."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testkit.media import decoded

from openenv_gateway.mapping import images
from openenv_gateway.mapping.images import Layout, declared_picture, layout_of, nested_picture

NOISE = random.Random(7)


def flat(*shape: int, low: int = 0, high: int = 255) -> list[int]:
    count = 1
    for side in shape:
        count *= side
    return [NOISE.randint(low, high) for _ in range(count)]


def folded(values: list[Any], *shape: int) -> Any:
    for side in reversed(shape[1:]):
        values = [values[at : at + side] for at in range(0, len(values), side)]
    return values


def pixels(block: dict[str, Any] | None) -> list[int]:
    assert block is not None
    assert (block["type"], block["mimeType"]) == ("image", "image/png")
    return list(decoded(block).tobytes())


@pytest.mark.parametrize("shape", [(64, 70), (64, 70, 1), (1, 64, 70), (32, 40, 3), (210, 160, 3)])
def test_a_flat_array_with_its_shape_is_a_picture(shape: tuple[int, ...]) -> None:
    values = flat(*shape)
    assert pixels(declared_picture(values, list(shape))) == values
    assert pixels(declared_picture(folded(values, *shape), list(shape))) == values
    assert pixels(nested_picture(folded(values, *shape))) == values


def test_the_sides_are_not_swapped() -> None:
    assert decoded(declared_picture(flat(40, 64, 3), [40, 64, 3]) or {}).size == (64, 40)
    assert decoded(nested_picture(folded(flat(70, 90), 70, 90)) or {}).size == (90, 70)


def test_a_picture_of_planes_is_interleaved() -> None:
    red, green, blue = flat(32, 48), flat(32, 48), flat(32, 48)
    interleaved = [value for triple in zip(red, green, blue, strict=True) for value in triple]
    assert pixels(declared_picture([*red, *green, *blue], [3, 32, 48])) == interleaved
    assert pixels(nested_picture(folded([*red, *green, *blue], 3, 32, 48))) == interleaved


def test_four_channels_are_a_picture_when_the_fourth_is_opaque() -> None:
    opaque = [value for _ in range(32 * 32) for value in (1, 20, 200, 255)]
    assert pixels(nested_picture(folded(opaque, 32, 32, 4))) == opaque
    assert nested_picture(folded(flat(84, 84, 4), 84, 84, 4)) is None  # four grey frames, the newest last
    assert declared_picture(flat(84, 84, 4), [84, 84, 4]) is None


def test_floats_from_0_to_1_are_scaled() -> None:
    assert set(pixels(nested_picture([[0.0, 1.0, 0.5, 0] * 16] * 64))) == {0, 255, 128}


def test_floats_that_are_whole_numbers_are_taken_as_they_are() -> None:
    assert set(pixels(declared_picture([0.0, 17.0, 255.0, 3] * (16 * 64), [64, 64]))) == {0, 17, 255, 3}


@pytest.mark.parametrize("wrong", [-1, 256, 0.5, -0.1, 300.0, "7", None, [7], True])
def test_an_array_with_a_value_that_is_no_pixel_stays_data(wrong: Any) -> None:
    values: list[Any] = [200.0] * (64 * 64)
    values[70] = wrong
    assert declared_picture(values, [64, 64]) is None
    assert nested_picture(folded(values, 64, 64)) is None


BOARDS: dict[str, Any] = {
    "connect4": folded(flat(6, 7, low=-1, high=1), 6, 7),
    "maze": folded(flat(8, 8, high=1), 8, 8),
    "snake's grid": folded(flat(20, 20, high=5), 20, 20),
    "snake's one-hot grid": [[[0.0, 1.0] * 4] * 20] * 20,
    "MiniGrid": folded(flat(7, 7, 3, high=10), 7, 7, 3),
    "MiniGrid, whole": folded(flat(25, 25, 3, high=10), 25, 25, 3),
    "NetHack's characters": folded(flat(21, 79, low=32, high=126), 21, 79),
    "a forest of 100x100 with five kinds of cells": folded(flat(100, 100, high=4), 100, 100),
    "a large empty board": folded([0] * 10_000, 100, 100),
    "MNIST": folded(flat(28, 28), 28, 28),
    "one row": [flat(5000)],
    "four dimensions": folded(flat(2, 64, 64, 2), 2, 64, 64, 2),
    "two channels": folded(flat(64, 64, 2), 64, 64, 2),
    "words": [["word"] * 64] * 64,
    "irregular": [flat(64)] * 63 + [flat(63)],
    "irregular below": [[[1, 2, 3]] * 64] * 63 + [[[1, 2, 3]] * 63 + [[1, 2]]],
    "a number among rows": [flat(64)] * 63 + [5],
    "empty": [],
    "empty rows": [[]] * 64,
}


@pytest.mark.parametrize("name", BOARDS)
def test_boards_and_tables_stay_data(name: str) -> None:
    assert nested_picture(BOARDS[name]) is None


def test_a_declared_black_screen_is_a_picture() -> None:
    assert pixels(declared_picture([0] * (210 * 160), [210, 160])) == [0] * (210 * 160)


@pytest.mark.parametrize(
    "shape",
    [None, [], "64x64", {}, [128], [6, 7], [64, 65], [64, -64], [64.0, 64], [True, 64], [64, 64, 2], [2, 32, 64], [64, 64, 3]],
)
def test_a_shape_that_does_not_fit_leaves_the_array_as_data(shape: Any) -> None:
    assert declared_picture(flat(64, 64), shape) is None


def test_a_nested_array_that_breaks_its_declared_shape_stays_data() -> None:
    assert declared_picture([flat(64)] * 63 + [flat(63)], [64, 64]) is None


def test_an_array_beyond_the_bound_stays_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "MAX_VALUES", 64 * 64)
    assert layout_of([64, 64]) == Layout(64, 64, 1)
    assert layout_of([64, 65]) is None


@given(st.lists(st.integers(0, 300), max_size=4))
def test_a_layout_has_the_arrays_own_number_of_values(dimensions: list[int]) -> None:
    layout = layout_of(dimensions)
    if layout is not None:
        total = 1
        for side in dimensions:
            total *= side
        assert layout.height * layout.width * layout.channels == total
        assert min(layout.height, layout.width) >= images.MIN_COLOUR_SIDE
