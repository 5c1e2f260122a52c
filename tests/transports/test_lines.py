"""Lines over file descriptors."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openenv_gateway.transports.lines import LineWriter, lines_of

LIMIT = 20


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        try:
            os.close(end)
        except OSError:
            continue  # the test closed it itself


def read_all(pieces: list[bytes], limit: int = LIMIT) -> list[bytes | None]:
    """What is read of pieces that come one at a time."""
    inward, outward = os.pipe()
    found: list[bytes | None] = []
    reader = threading.Thread(target=lambda: found.extend(lines_of(inward, limit)))
    reader.start()
    for piece in pieces:
        os.write(outward, piece)
    os.close(outward)
    reader.join(5)
    os.close(inward)
    return found


@given(st.lists(st.binary(max_size=30), max_size=6), st.integers(1, 7))
def test_lines_are_the_same_however_they_come_and_long_ones_are_dropped_whole(lines: list[bytes], size: int) -> None:
    lines = [line.replace(b"\n", b"") for line in lines]
    data = b"".join(line + b"\n" for line in lines)
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    assert read_all(pieces) == [line if len(line) <= LIMIT else None for line in lines]


def test_a_last_line_needs_no_line_break() -> None:
    assert read_all([b"one\ntw", b"o"]) == [b"one", b"two"]
    assert read_all([b"x" * (LIMIT + 1)]) == [None]
    assert read_all([]) == []


def test_a_writer_keeps_the_order_and_writes_all(pipe: tuple[int, int]) -> None:
    writer = LineWriter(pipe[1])
    big = b"x" * 500_000
    reader = threading.Thread(target=lambda: got.extend(lines_of(pipe[0], 2**20)))
    got: list[bytes | None] = []
    reader.start()
    for line in (b"1", big, b"2"):
        writer.write(line)
    writer.close(5)
    os.close(pipe[1])
    reader.join(5)
    assert got == [b"1", big, b"2"]


def test_a_reader_that_reads_nothing_holds_nobody_up(pipe: tuple[int, int], caplog: pytest.LogCaptureFixture) -> None:
    writer = LineWriter(pipe[1])
    for _ in range(10):
        writer.write(b"x" * 500_000)
    writer.close(0.05)
    assert "does not read" in caplog.text
    os.close(pipe[0])  # lets the thread end; what it logs must not come into another test
    writer.close(5)


def test_a_closed_reader_is_told_once(pipe: tuple[int, int], caplog: pytest.LogCaptureFixture) -> None:
    os.close(pipe[0])
    writer = LineWriter(pipe[1])
    for _ in range(3):
        writer.write(b"x")
    writer.close(5)
    assert caplog.text.count("answers are lost") == 1
