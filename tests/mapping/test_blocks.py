"""What environments' tools return → content blocks, one to one where that is possible, text where it is not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from testkit.judges import judged
from testkit.media import base64_of, picture, sound

from openenv_gateway.mapping import encoded
from openenv_gateway.mapping.blocks import cap_blocks, content_blocks, text_block, unpack_texts
from openenv_gateway.mapping.content import Gallery
from openenv_gateway.mapping.cuts import encode
from openenv_gateway.mapping.whole import Whole

PNG, WAV = base64_of(picture()), base64_of(sound())


def block(item: Any) -> Any:
    (only,) = content_blocks([item])
    judged({"content": [only], "isError": True, "_meta": {}})
    return only


def text(item: Any) -> str:
    found = block(item)
    assert found["type"] == "text"
    return str(found["text"])


def test_text_loses_its_nulls() -> None:
    assert block({"type": "text", "text": "hi", "annotations": None, "meta": None}) == {"type": "text", "text": "hi"}


@pytest.mark.parametrize("name", ["mimeType", "mime_type"])
def test_pictures_and_sounds_go_through_in_either_spelling(name: str) -> None:
    assert block({"type": "image", "data": PNG, name: "image/x-odd", "meta": None}) == {
        "type": "image",
        "data": PNG,
        "mimeType": "image/x-odd",
    }
    assert block({"type": "audio", "data": WAV, name: "audio/wav"}) == {"type": "audio", "data": WAV, "mimeType": "audio/wav"}


def test_a_missing_mime_type_is_found_in_the_bytes() -> None:
    assert block({"type": "image", "data": PNG, "mimeType": None}) == {"type": "image", "data": PNG, "mimeType": "image/png"}


def test_a_picture_that_is_none_becomes_a_remark(monkeypatch: pytest.MonkeyPatch) -> None:
    assert text({"type": "image", "data": "no base64!", "mimeType": "image/png"}).startswith("[image of 10 characters")
    assert text({"type": "image", "data": "QUJD"}).startswith("[image of 4 characters that are no base64, or of no known type")
    monkeypatch.setattr(encoded, "MAX_TEXT", 10)
    remark = f"[audio of {len(WAV)} base64 characters, too large to show]"
    assert text({"type": "audio", "data": WAV, "mimeType": "audio/wav"}) == remark


def test_resources_go_through_in_either_spelling() -> None:
    shown = {"uri": "file:///a.txt", "text": "A", "mimeType": "text/plain"}
    item = {"type": "resource", "resource": {"uri": "file:///a.txt", "mime_type": "text/plain", "text": "A", "meta": None}}
    assert block(item) == {"type": "resource", "resource": shown}
    blob = {"uri": "file:///a.bin", "blob": "QUJD"}
    assert block({"type": "resource", "resource": {**blob, "mimeType": None}}) == {"type": "resource", "resource": blob}


def test_a_resource_that_is_none_becomes_its_json() -> None:
    for resource in ({"uri": "file:///a", "blob": "no base64!"}, {"uri": "file:///a"}, {"text": "no uri"}, None):
        item = {"type": "resource", "resource": resource}
        assert text(item) == encode(item).decode()


def test_a_link_becomes_text_since_agents_cannot_follow_it() -> None:
    link = {"type": "resource_link", "uri": "file:///log.txt", "name": "log", "title": None, "description": "the last run"}
    assert text(link) == "[resource log: file:///log.txt] the last run"
    assert text({**link, "title": "Log", "description": None}) == "[resource Log: file:///log.txt]"
    assert text({"type": "resource_link", "uri": "file:///log.txt"}) == "[resource file:///log.txt]"


@pytest.mark.parametrize(
    "item",
    [{"type": "video", "data": "x"}, {"type": "text"}, {"type": "image"}, {"type": "resource_link"}, {}, [1, "a"], 5, None],
)
def test_what_is_no_block_becomes_its_json(item: Any) -> None:
    assert text(item) == encode(item).decode()


def test_a_bare_string_is_a_text() -> None:
    assert block("hello") == text_block("hello")


def test_empty_texts_are_left_out() -> None:
    assert content_blocks([{"type": "text", "text": ""}, "", "a"]) == [text_block("a")]


def test_annotations_and_meta_are_kept_as_far_as_they_are_valid() -> None:
    annotations = {"audience": ["user", "assistant"], "priority": 0.5, "lastModified": "2026-01-01T00:00:00Z"}
    item = {"type": "text", "text": "a", "annotations": annotations, "_meta": {"x": 1}}
    assert block(item) == item
    snake = {"audience": ["user"], "priority": None, "last_modified": "2026-01-01T00:00:00Z", "title": "x"}
    assert block({"type": "text", "text": "a", "annotations": snake, "meta": {"y": None}}) == {
        "type": "text",
        "text": "a",
        "annotations": {"audience": ["user"], "lastModified": "2026-01-01T00:00:00Z"},
        "_meta": {"y": None},
    }
    odd = {"audience": ["robot"], "priority": 2, "lastModified": 7}
    for annotations in (odd, {"audience": [], "priority": True}):
        item = {"type": "text", "text": "a", "annotations": annotations, "meta": "m"}
        assert block(item) == {"type": "text", "text": "a", "annotations": {}}


KEYS = "type text data mimeType mime_type resource uri blob annotations audience priority meta".split()
ITEMS = st.recursive(
    st.sampled_from([None, True, 0, 1, 0.5, 2, "text", "image", "user", "QUJD", PNG, ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=15,
)
TYPED = st.builds(
    lambda item, kind: {**item, "type": kind},
    st.dictionaries(st.sampled_from(["text", "data", "mimeType", "resource", "uri", "annotations", "_meta", "name"]), ITEMS),
    st.sampled_from(["text", "image", "audio", "resource", "resource_link"]),
)


@settings(suppress_health_check=[HealthCheck.too_slow])  # on a busy machine
@given(st.lists(ITEMS | TYPED, max_size=4))
def test_every_official_model_accepts_whatever_content_becomes(content: list[Any]) -> None:
    judged({"content": [text_block("first"), *content_blocks(content)], "isError": True, "_meta": {}})


def test_texts_share_the_limit_and_a_cut_one_says_so() -> None:
    blocks = [text_block("a" * 900), text_block("b" * 900), text_block("c" * 900)]
    first, second, third = cap_blocks(blocks, 1000, Whole(lambda: "openenv://latest", 10_000))
    assert first is not blocks[0] and first == blocks[0]
    assert second["text"].startswith("b" * 500 + "\n[cut: the first 500 of 900 bytes; the whole can be read at openenv://latest]")
    assert third["text"].startswith("c" * 500 + "\n[cut")


def test_pictures_are_not_counted_as_text() -> None:
    blocks = [{"type": "image", "data": PNG * 50, "mimeType": "image/png"}, text_block("a" * 600)]
    assert cap_blocks(blocks, 600) == blocks


def test_a_resource_beyond_the_limit_becomes_cut_text() -> None:
    big = {"type": "resource", "resource": {"uri": "file:///a.txt", "text": "x" * 5000}}
    (capped,) = cap_blocks([big], 1000)
    assert capped["text"].startswith("[resource file:///a.txt]\nxxx") and capped["text"].endswith("of 5025 bytes]")
    binary = {"type": "resource", "resource": {"uri": "file:///a.bin", "blob": "QUJD" * 1000}}
    assert cap_blocks([binary], 1000) == [text_block("[resource file:///a.bin of 4000 base64 characters, too large to show]")]
    whole = Whole(lambda: "openenv://latest", 10_000)
    told = "[resource file:///a.bin of 4000 base64 characters, to be read at openenv://latest]"
    assert cap_blocks([binary], 1000, whole) == [text_block(told)]
    assert [part.contents("u") for part in whole.parts] == [
        {"uri": "u", "mimeType": "application/octet-stream", "blob": "QUJD" * 1000}
    ]
    small = {"type": "resource", "resource": {"uri": "file:///a.txt", "text": "x"}}
    assert cap_blocks([small], 1000) == [small]


def test_a_picture_in_a_printed_object_is_taken_out() -> None:
    printed = encode({"caption": "x" * 1000, "png": PNG}).decode()
    gallery = Gallery(2)
    expected = encode({"caption": "x" * 1000, "png": {"$content": 2}}).decode()
    assert unpack_texts([text_block(printed), text_block("other")], gallery) == [text_block(expected), text_block("other")]
    assert [found["data"] for found in gallery.blocks] == [PNG]


def test_a_text_that_is_a_picture_points_to_it() -> None:
    gallery = Gallery(1)
    assert unpack_texts([text_block(PNG)], gallery) == [text_block('{"$content":1}')]


@pytest.mark.parametrize("printed", ["{" + "x" * 2000, "[" * 600 + "]" * 600, "[" + "1, " * 600 + "1]", "[1]"])
def test_other_texts_stay_as_the_tool_wrote_them(printed: str) -> None:
    gallery = Gallery()
    blocks = [text_block(printed), {"type": "image", "data": PNG, "mimeType": "image/png"}]
    assert unpack_texts(blocks, gallery) == blocks
    assert gallery.blocks == []
