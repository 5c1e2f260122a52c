"""Pictures and sounds are found anywhere in a value, and a marker stands where they were."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testkit.media import base64_of, mp3, picture, sound

from openenv_gateway.mapping import content
from openenv_gateway.mapping.content import Gallery

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
