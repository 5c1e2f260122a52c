"""Pictures and sounds are found anywhere in a value, and a marker stands where they were."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testkit.media import base64_of, mp3, picture, sound

from openenv_gateway.mapping import content
from openenv_gateway.mapping.content import Gallery, may_hold_media

RED, BLUE = base64_of(picture(colour=(255, 0, 0))), base64_of(picture(colour=(0, 0, 255)))

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=20,
)


def kinds(gallery: Gallery) -> list[str]:
    return [block["mimeType"] for block in gallery.blocks]


@given(JSON_VALUES)
def test_a_value_without_pictures_comes_back_equal(value: Any) -> None:
    gallery = Gallery()
    assert gallery.take(value) == value
    assert gallery.blocks == []


def test_pictures_are_found_at_any_depth_and_numbered_in_their_order() -> None:
    gallery = Gallery(first=3)
    value = {"camera_image": RED, "deep": [{"images": [BLUE, "text"]}], "sound": base64_of(sound())}
    kept = copy.deepcopy(value)
    assert gallery.take(value) == {
        "camera_image": {"$content": 3},
        "deep": [{"images": [{"$content": 4}, "text"]}],
        "sound": {"$content": 5},
    }
    assert value == kept
    assert kinds(gallery) == ["image/png", "image/png", "audio/wav"]


def test_the_same_picture_twice_is_one_block() -> None:
    gallery = Gallery()
    assert gallery.take([RED, BLUE, RED, f"data:image/png;base64,{RED}"]) == [{"$content": at} for at in (1, 2, 1, 1)]
    assert len(gallery.blocks) == 2


def test_a_picture_that_content_begins_with_is_pointed_to_there() -> None:
    present = [{"type": "text", "text": "see"}, {"type": "image", "data": RED, "mimeType": "image/png"}]
    gallery = Gallery(2, present)
    assert gallery.take({"a": RED, "b": BLUE}) == {"a": {"$content": 1}, "b": {"$content": 2}}
    assert [block["data"] for block in gallery.blocks] == [BLUE]


def test_an_array_with_a_shape_beside_it_is_a_picture_and_the_shape_stays() -> None:
    screen = [7] * (64 * 64)
    gallery = Gallery()
    taken = gallery.take({"screen": screen, "screen_shape": [64, 64], "inner": {"data": screen, "shape": [64, 64]}})
    assert taken == {"screen": {"$content": 1}, "screen_shape": [64, 64], "inner": {"data": {"$content": 1}, "shape": [64, 64]}}


def test_a_list_of_frames_is_a_list_of_pictures() -> None:
    frame = [[[9, 8, 7]] * 40] * 40
    other = [[[1, 2, 3]] * 40] * 40
    gallery = Gallery()
    assert gallery.take({"frames": [frame, other]}) == {"frames": [{"$content": 1}, {"$content": 2}]}


def test_a_shape_that_does_not_fit_leaves_the_array() -> None:
    value = {"ram": list(range(128)), "ram_shape": [128], "names": ["a", RED], "names_shape": [2, 1]}
    gallery = Gallery()
    assert gallery.take(value) == {**value, "names": ["a", {"$content": 1}]}


def test_more_blocks_than_a_result_may_have_stay_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "MAX_BLOCKS", 1)
    gallery = Gallery()
    assert gallery.take([RED, BLUE, RED]) == [{"$content": 1}, BLUE, {"$content": 1}]


def test_more_letters_than_a_result_may_have_stay_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "MAX_LETTERS", len(RED))
    gallery = Gallery()
    long = base64_of(mp3())
    assert gallery.take([long, RED, BLUE]) == [long, {"$content": 1}, BLUE]


def test_a_list_that_begins_and_ends_with_a_number_is_data() -> None:
    assert Gallery().take([1, RED, 2.5]) == [1, RED, 2.5]
    assert Gallery().take([1, RED, True]) == [1, {"$content": 1}, True]


# --- the look ahead --------------------------------------------------------------------------------------------------

GREY = [[200] * 64] * 64
COLOUR = [[[9, 8, 7]] * 40] * 40
PLANES = [[[9] * 40] * 40] * 3
FLAT = [7] * (64 * 64)
PICTURES = [
    RED,
    BLUE,
    f"data:image/png;base64,{RED}",
    "\n".join(RED[at : at + 60] for at in range(0, len(RED), 60)),
    base64_of(sound()),
    base64_of(mp3()),
    GREY,
    COLOUR,
    PLANES,
    [[0.5] * 64] * 64,
]
"""What a Gallery takes wherever it stands."""
SHAPED = [
    {"screen": FLAT, "screen_shape": [64, 64]},
    {"screen": FLAT, "shape": [64, 64, 1]},
    {"screen": [[7] * 64] * 64, "shape": [64, 64]},
    {"screen": [True] * (64 * 64), "screen_shape": [64, 64]},
    {"screen": [7.0, *[1] * 4095], "shape": [1, 64, 64], "n": 1},
]
"""Arrays that are pictures by what their owner says of their shape."""
NO_PICTURES = [
    RED[:40],
    RED[:-4] + "!!!!",
    "data:text/plain;base64," + "x" * 60,
    "x" * 60,
    FLAT,
    [[1] * 7] * 6,
    [[False] * 64] * 64,
    [1, RED, 2],
    [[1, RED, 2]],
    {"ram": FLAT, "ram_shape": [4096]},
    {"shape": [64, 64]},
]

HOLDING_MEDIA = st.recursive(
    st.sampled_from([*PICTURES, *SHAPED, *NO_PICTURES]) | st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.sampled_from(["screen", "screen_shape", "shape", "a", "b"]), inner, max_size=4),
    max_leaves=8,
)


@given(HOLDING_MEDIA | JSON_VALUES)
def test_whatever_a_gallery_takes_something_out_of_is_seen_to_hold_media(value: Any) -> None:
    assert may_hold_media({"it": value}) or Gallery().take(value) == value


@pytest.mark.parametrize("value", [*PICTURES, *SHAPED], ids=lambda value: str(value)[:30])
@pytest.mark.parametrize("place", [lambda one: one, lambda one: [None, one], lambda one: {"n": 1, "deep": [{"a": [one]}]}])
def test_every_kind_of_picture_is_seen_wherever_it_stands(value: Any, place: Callable[[Any], Any]) -> None:
    assert Gallery().take(place(value)) != place(value)
    assert may_hold_media({"it": place(value)})


@pytest.mark.parametrize(
    "value",
    [
        {"count": 3, "echo": {"add": 1}, "text": "long " * 100, "done": False},
        {"board": [0, 1, 2], "legal": [1.5, "x", 2], "names": ["a", "b"], "nothing": [], "grid": {"cells": [0] * 9}},
        [1, RED, 2],
    ],
)
def test_what_most_observations_are_like_is_seen_to_hold_none(value: Any) -> None:
    assert not may_hold_media({"it": value})
