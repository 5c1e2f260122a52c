"""Base64 that is a picture or sound becomes a block; text that only looks like it stays text."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testkit.media import base64_of, mp3, picture, sound

from openenv_gateway.mapping import encoded
from openenv_gateway.mapping.encoded import block_of, decoded, media_block, unwrapped


@pytest.mark.parametrize(
    ("data", "kind", "mime"),
    [
        (picture("PNG"), "image", "image/png"),
        (picture("JPEG"), "image", "image/jpeg"),
        (picture("GIF"), "image", "image/gif"),
        (picture("WEBP"), "image", "image/webp"),
        (sound(), "audio", "audio/wav"),
        (mp3(), "audio", "audio/mpeg"),
    ],
)
def test_bare_base64_and_a_data_uri_give_the_same_block(data: bytes, kind: str, mime: str) -> None:
    text = base64_of(data)
    expected = {"type": kind, "data": text, "mimeType": mime}
    assert media_block(text) == expected
    assert media_block(f"data:{mime};base64,{text}") == expected
    assert media_block("data:application/octet-stream;charset=x;base64," + text) == expected  # the bytes decide


def test_base64_wrapped_in_lines_is_joined() -> None:
    data = picture("PNG", (200, 200))
    wrapped = base64.encodebytes(data).decode()
    assert "\n" in wrapped.strip()
    assert media_block(wrapped.replace("\n", "\r\n")) == {"type": "image", "data": base64_of(data), "mimeType": "image/png"}
    assert unwrapped("abcd") == "abcd"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "iVBORw0KGgo",
        "iVBORw0KGgo" + "A" * 61,  # valid base64, no PNG
        "iVBORw0KGgo is how every PNG begins when it is written down in base64",
        "/9j/" + "quiet/path/to/some/file/that/looks/like/base64/aaaa/bbbb/cc",
        "R0lGODlh" + "x" * 50,
        "UklGR" + "A" * 59,
        "//server/share/folder/another/folder/and/one/more/file/name",
        "data:image/png;base64",
        "data:image/svg+xml," + "<svg xmlns='http://www.w3.org/2000/svg'></svg>" * 2,
        "data:image/png;base64," + "not base64 at all, whatever the prefix says about it",
        "just a sentence that is long enough to be looked at, and nothing more",
        base64_of(picture()) + "é",
        base64_of(picture())[:-5],
        base64_of(picture()) + "trailing words",
        " " + base64_of(picture()),
    ],
)
def test_text_that_merely_looks_so_stays_text(text: str) -> None:
    assert media_block(text) is None


def test_a_text_beyond_the_bound_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    text = base64_of(picture())
    monkeypatch.setattr(encoded, "MAX_TEXT", len(text))
    assert media_block(text) is not None
    monkeypatch.setattr(encoded, "MAX_TEXT", len(text) - 1)
    assert media_block(text) is None


@given(st.sampled_from(encoded.FIRST_LETTERS), st.text(st.sampled_from("ABCabc019+/=\n"), max_size=200))
def test_letters_behind_a_signature_never_break_the_reader(first: str, rest: str) -> None:
    block = media_block(first + rest)
    assert block is None or block == block_of(block["data"])


def test_only_strict_base64_is_decoded() -> None:
    assert decoded("YWJj") == b"abc"
    assert [decoded(text) for text in ("YWJ", "YW Jj", "YW-_", "é")] == [None] * 4
