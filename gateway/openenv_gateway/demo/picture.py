"""The board as a PNG of a few hundred bytes, with nothing but zlib. Pure.

PNG layout: W3C Portable Network Graphics, third edition, sections 5.3 (chunks), 9.2 (filter type 0) and 11.2 (IHDR, PLTE).
"""

from __future__ import annotations

import struct
import zlib

TILE = 32
SIZE = 3 * TILE
PAPER, INK, CROSS, NOUGHT = range(4)
PALETTE = bytes((250, 250, 245, 60, 60, 60, 200, 40, 40, 30, 90, 200))


def board_png(board: str) -> bytes:
    """The PNG (96 x 96 pixels) of nine cells given as characters: `X` red, `O` blue, anything else empty."""
    tiles = [TILES.get(mark, BLANK) for mark in board]
    rows = [b"\0" + b"".join(tile[y] for tile in tiles[first : first + 3]) for first in (0, 3, 6) for y in range(TILE)]
    header = struct.pack(">IIBBBBB", SIZE, SIZE, 8, 3, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"PLTE", PALETTE), (b"IDAT", zlib.compress(b"".join(rows))), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _tile(mark: str) -> tuple[bytes, ...]:
    return tuple(bytes(_pixel(x, y, mark) for x in range(TILE)) for y in range(TILE))


def _pixel(x: int, y: int, mark: str) -> int:
    if x in (0, TILE - 1) or y in (0, TILE - 1):
        return INK
    if not (6 <= x < TILE - 6 and 6 <= y < TILE - 6):
        return PAPER
    if mark == "X" and (abs(x - y) <= 1 or abs(x + y - TILE + 1) <= 1):
        return CROSS
    half = (TILE - 1) / 2
    if mark == "O" and 60 <= (x - half) ** 2 + (y - half) ** 2 <= 100:
        return NOUGHT
    return PAPER


TILES = {mark: _tile(mark) for mark in "XO"}
BLANK = _tile(".")
