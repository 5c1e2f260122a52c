"""Small pictures and sounds, made here so that no picture library is needed."""

from __future__ import annotations

import struct
import zlib


def pixel(row: int, column: int, number: int) -> tuple[int, int, int]:
    """The colour at a place of picture `number`: the same for ever."""
    return (row * 16 + number) % 256, (column * 16) % 256, (number * 40) % 256


def rows(height: int, width: int, number: int) -> list[list[list[int]]]:
    """Picture `number` as height x width x 3 numbers from 0 to 255."""
    return [[list(pixel(row, column, number)) for column in range(width)] for row in range(height)]


def png(height: int, width: int, number: int) -> bytes:
    """Picture `number` as a PNG file (8 bits, RGB)."""
    lines = b"".join(b"\0" + bytes(value for cell in row for value in cell) for row in rows(height, width, number))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(lines)) + _chunk(b"IEND", b"")


def wav(samples: int) -> bytes:
    """A sawtooth as a WAV file: 8 bits, one channel, 8000 samples a second."""
    data = bytes(index * 8 % 256 for index in range(samples))
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, 8000, 8000, 1, 8)
    return struct.pack("<4sI4s", b"RIFF", 36 + len(data), b"WAVE") + form + struct.pack("<4sI", b"data", len(data)) + data


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
