"""Pictures and sounds told by their own bytes, never by a field's name: PNG, JPEG, GIF, WebP, WAV, MP3. Pure.

Environments send them as bare base64 without a MIME type. A signature alone is short (an MP3 frame starts with 11 set bits),
so each format must also show a sane header, and a picture its end: what is cut off or only looks like a picture stays text,
because one picture that a model's service cannot decode fails the agent's whole request.
"""

from __future__ import annotations

import struct

MAX_SIDE = 16_384
"""Pixels. A header that claims more is no picture that anybody could show (a decompression bomb)."""

MAX_PIXELS = 64_000_000

_JPEG_SIZE_MARKERS = frozenset({*range(0xC0, 0xC4), *range(0xC5, 0xC8), *range(0xC9, 0xCC), *range(0xCD, 0xD0)})
_MP3_BITRATES = {  # kbit/s by the header's index, layer III: MPEG 1, and MPEG 2 and 2.5
    True: (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 0),
    False: (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160, 0),
}
_MP3_RATES = {3: (44_100, 48_000, 32_000), 2: (22_050, 24_000, 16_000), 0: (11_025, 12_000, 8_000)}


def mime_type(data: bytes) -> str | None:
    """The MIME type of a picture or sound, None when the bytes are neither, a picture cut off, or one beyond MAX_PIXELS."""
    size = picture_size(data)
    if size is not None:
        return size[0] if _sane(size[1], size[2]) else None
    if data[:4] == b"RIFF" and data[8:12] == b"WAVE" and b"fmt " in data[12:1024]:
        return "audio/wav"
    if _is_mp3(data):
        return "audio/mpeg"
    return None


def picture_size(data: bytes) -> tuple[str, int, int] | None:
    """MIME type, width and height in pixels as the picture's header says, None when there is no whole picture."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return _png(data)
    if data.startswith((b"GIF87a", b"GIF89a")):
        return _gif(data)
    if data.startswith(b"\xff\xd8\xff"):
        return _jpeg(data)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return _webp(data)
    return None


def _sane(width: int, height: int) -> bool:
    return 0 < width <= MAX_SIDE and 0 < height <= MAX_SIDE and width * height <= MAX_PIXELS


def _png(data: bytes) -> tuple[str, int, int] | None:
    if data[12:16] != b"IHDR" or data.rfind(b"IEND") < 24:
        return None
    width, height = struct.unpack_from(">II", data, 16)
    return "image/png", width, height


def _gif(data: bytes) -> tuple[str, int, int] | None:
    if len(data) < 14 or data.rfind(b";") < 13:
        return None
    width, height = struct.unpack_from("<HH", data, 6)
    return "image/gif", width, height


def _jpeg(data: bytes) -> tuple[str, int, int] | None:
    """Walk the segments (ITU T.81, B.1.1) to the frame header, which has the size."""
    at, end = 2, data.rfind(b"\xff\xd9")
    while at + 9 <= end and data[at] == 0xFF:
        if data[at + 1] in _JPEG_SIZE_MARKERS:
            height, width = struct.unpack_from(">HH", data, at + 5)
            return "image/jpeg", width, height
        at += 2 + struct.unpack_from(">H", data, at + 2)[0]
    return None


def _webp(data: bytes) -> tuple[str, int, int] | None:
    """The three first chunks of RFC 9649: lossy, lossless, extended."""
    if len(data) < 30 or not _riff_is_whole(data):
        return None
    kind = data[12:16]
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", data, 26)
        return "image/webp", width & 0x3FFF, height & 0x3FFF
    if kind == b"VP8L":
        bits = struct.unpack_from("<I", data, 21)[0]
        return "image/webp", (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8X":
        return "image/webp", int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
    return None


def _riff_is_whole(data: bytes) -> bool:
    return int.from_bytes(data[4:8], "little") + 8 <= len(data) + 1  # some writers leave out the last pad byte


def _is_mp3(data: bytes) -> bool:
    if data.startswith(b"ID3"):
        return _id3_length(data) < len(data)
    length = _mp3_frame(data, 0)
    return length > 0 and _mp3_frame(data, length) > 0


def _id3_length(data: bytes) -> int:
    """The length in bytes of the ID3v2 tag (10 bytes and four times 7 bits), beyond the data's own when it is no tag."""
    digits = data[6:10]
    if len(digits) < 4 or max(digits) > 0x7F:
        return len(data)
    return 10 + (digits[0] << 21 | digits[1] << 14 | digits[2] << 7 | digits[3])


def _mp3_frame(data: bytes, at: int) -> int:
    """The length in bytes of the layer III frame that starts `at`, 0 when none does."""
    header = data[at : at + 4]
    if len(header) < 4 or header[0] != 0xFF or header[1] & 0xE6 != 0xE2:
        return 0
    version, rate_index = header[1] >> 3 & 3, header[2] >> 2 & 3
    bitrate = _MP3_BITRATES[version == 3][header[2] >> 4]
    if version not in _MP3_RATES or rate_index == 3 or not bitrate:
        return 0
    samples = 144 if version == 3 else 72
    return samples * bitrate * 1000 // _MP3_RATES[version][rate_index] + (header[2] >> 1 & 1)
