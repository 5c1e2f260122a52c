"""Pictures and sounds are told by their bytes; what only begins like one is not."""

from __future__ import annotations

import io
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from testkit.media import mp3, picture, sound

from openenv_gateway.mapping.signatures import MAX_SIDE, mime_type, picture_size

FORMATS = {"PNG": "image/png", "JPEG": "image/jpeg", "GIF": "image/gif", "WEBP": "image/webp"}
MAGIC = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF89a", b"RIFF....WEBP", b"RIFF....WAVE", b"ID3", b"\xff\xfb\x90")


def webp(size: tuple[int, int], mode: str = "RGB", **options: bool) -> bytes:
    buffer = io.BytesIO()
    Image.new(mode, size).save(buffer, "WEBP", **options)
    return buffer.getvalue()


def chunk(kind: bytes, body: bytes) -> bytes:
    return b"RIFF" + struct.pack("<I", 12 + len(body)) + b"WEBP" + kind + struct.pack("<I", len(body)) + body


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("size", [(1, 1), (40, 30), (300, 7)])
def test_a_picture_is_known_with_its_size(kind: str, size: tuple[int, int]) -> None:
    assert picture_size(picture(kind, size)) == (FORMATS[kind], *size)
    assert mime_type(picture(kind, size)) == FORMATS[kind]


def test_each_form_of_webp_is_known() -> None:
    assert picture_size(webp((50, 20), lossless=True)) == ("image/webp", 50, 20)
    assert picture_size(webp((50, 20), "RGBA")) == ("image/webp", 50, 20)
    extended = chunk(b"VP8X", bytes(4) + (49).to_bytes(3, "little") + (19).to_bytes(3, "little"))
    assert picture_size(extended) == ("image/webp", 50, 20)
    assert picture_size(chunk(b"ALPH", bytes(40))) is None


@pytest.mark.parametrize("kind", FORMATS)
def test_a_picture_that_was_cut_off_is_none(kind: str) -> None:
    whole = picture(kind, (300, 200))
    assert [mime_type(whole[:length]) for length in (len(whole) // 2, 20, 14, 12, 6)] == [None] * 5


def test_a_picture_with_something_behind_its_end_is_still_one() -> None:
    assert mime_type(picture("JPEG") + b"\0\0") == "image/jpeg"
    assert mime_type(picture("PNG") + b"\n") == "image/png"


def test_a_picture_too_large_to_be_shown_is_none() -> None:
    header = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR%s\x08\x02\0\0\0....IEND...."
    for width, height in ((MAX_SIDE + 1, 1), (1, MAX_SIDE + 1), (MAX_SIDE, MAX_SIDE), (0, 5), (5, 0)):
        assert mime_type(header % struct.pack(">II", width, height)) is None
    assert mime_type(header % struct.pack(">II", 640, 480)) == "image/png"


def test_a_png_without_its_header_chunk_is_none() -> None:
    assert mime_type(picture("PNG").replace(b"IHDR", b"JUNK")) is None


def test_a_jpeg_is_walked_to_its_frame_header() -> None:
    segment = b"\xff\xe1" + struct.pack(">H", 5002) + bytes(5000)
    whole = picture("JPEG", (90, 60))
    assert picture_size(whole[:2] + segment + whole[2:]) == ("image/jpeg", 90, 60)
    assert picture_size(b"\xff\xd8\xff\xe0\x00\x04ab" + b"no marker here, nothing at all" + b"\xff\xd9") is None


def test_sounds_are_known() -> None:
    assert mime_type(sound()) == "audio/wav"
    assert mime_type(mp3()) == "audio/mpeg"
    assert mime_type(b"ID3\x04\x00\x00\x00\x00\x00\x05" + b"12345" + mp3()) == "audio/mpeg"
    mpeg2 = b"\xff\xf3\x40\x00" + bytes(140)  # 32 kbit/s at 22.05 kHz: 104 bytes each
    assert mime_type(mpeg2[:104] * 2) == "audio/mpeg"


def test_what_only_begins_like_a_sound_is_none() -> None:
    assert mime_type(b"RIFF\x10\0\0\0WAVEjunkjunkjunk") is None
    assert mime_type(mp3(1)) is None  # one frame's four bytes prove nothing
    assert mime_type(mp3(1) + b"something else") is None
    assert mime_type(b"ID3") is None
    assert mime_type(b"ID3 is what they call the tag of a sound") is None
    assert mime_type(b"ID3\x04\x00\x00\x00\x00\x7f\x7f short") is None
    for header in (b"\xff\xfb\xf0\x00", b"\xff\xfb\x00\x00", b"\xff\xfb\x9c\x00", b"\xff\xeb\x90\x00", b"\xff\xfd\x90\x00"):
        assert mime_type((header + bytes(413)) * 3) is None


@given(st.sampled_from(MAGIC), st.binary(max_size=200))
def test_bytes_behind_a_signature_never_break_the_reader(magic: bytes, rest: bytes) -> None:
    assert mime_type(magic + rest) in (None, *FORMATS.values(), "audio/wav", "audio/mpeg")


@given(st.binary(max_size=300))
def test_other_bytes_are_neither(data: bytes) -> None:
    assert mime_type(b"x" + data) is None
