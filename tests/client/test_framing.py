"""framing.py against the library's own reading and writing of frames (RFC 6455)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from testkit.raw_frames import written
from websockets.client import ClientProtocol
from websockets.frames import DATA_OPCODES, Frame, Opcode
from websockets.protocol import Protocol, State
from websockets.server import ServerProtocol
from websockets.uri import parse_uri

from openenv_client.framing import Boundaries, Masks, text_frame, whole_text

BORDERS = [0, 1, 2, 124, 125, 126, 127, 128, 2**16 - 2, 2**16 - 1, 2**16, 2**16 + 1]
"""Lengths beside those where another form of the length begins."""
LIMIT = 2**17

sizes = st.one_of(st.sampled_from(BORDERS), st.integers(0, 300))
messages = sizes.map(lambda size: bytes(32 + at % 95 for at in range(size)))
frames = st.builds(
    Frame,
    st.sampled_from([Opcode.TEXT, Opcode.BINARY, Opcode.CONT]),
    messages,
    st.booleans(),
    *[st.sampled_from([False, False, False, True])] * 3,
) | st.builds(Frame, st.sampled_from([Opcode.PING, Opcode.PONG, Opcode.CLOSE]), messages.filter(lambda data: len(data) <= 125))


def client() -> ClientProtocol:
    return ClientProtocol(parse_uri("ws://127.0.0.1/"), state=State.OPEN, max_size=LIMIT)


def read(protocol: Protocol, data: bytes) -> list[Frame]:
    """The data frames that the library reads; none after it found a fault."""
    protocol.receive_data(data)
    return [event for event in protocol.events_received() if isinstance(event, Frame) and event.opcode in DATA_OPCODES]


@pytest.mark.parametrize("size", BORDERS)
def test_the_library_reads_what_is_framed_here(size: int) -> None:
    message = bytes(at % 251 for at in range(size))
    (frame,) = read(ServerProtocol(state=State.OPEN, max_size=None), text_frame(message, Masks().next()))
    assert (frame.opcode, frame.fin, bytes(frame.data)) == (Opcode.TEXT, True, message)


@given(st.lists(messages, max_size=5), st.binary(min_size=4, max_size=4))
def test_frames_in_a_row_are_read_apart(several: list[bytes], mask: bytes) -> None:
    stream = b"".join(text_frame(message, mask) for message in several)
    found = read(ServerProtocol(state=State.OPEN, max_size=None), stream)
    assert [bytes(frame.data) for frame in found] == several


def test_masks_are_fresh_also_beyond_one_pool() -> None:
    masks = Masks()
    drawn = [masks.next() for _ in range(3000)]
    assert all(len(mask) == 4 for mask in drawn)
    assert len(set(drawn)) > 2990  # four random bytes may come twice, rarely


@given(frames, st.booleans())
def test_only_a_whole_unmasked_text_without_extensions_is_recognised(frame: Frame, mask: bool) -> None:
    is_plain = frame.opcode is Opcode.TEXT and frame.fin and not (frame.rsv1 or frame.rsv2 or frame.rsv3 or mask)
    assert whole_text(written(frame, mask=mask), LIMIT) == (frame.data if is_plain else None)


@given(messages, st.data())
def test_neither_a_part_nor_more_than_one_frame_is_recognised(message: bytes, data: st.DataObject) -> None:
    frame = written(Frame(Opcode.TEXT, message))
    assert whole_text(frame[: data.draw(st.integers(0, len(frame) - 1))], LIMIT) is None
    assert whole_text(frame + data.draw(st.binary(min_size=1, max_size=200)), LIMIT) is None
    assert whole_text(frame, len(message)) == message
    assert whole_text(frame, len(message) - 1) is None


@st.composite
def headed(draw: st.DrawFn) -> bytes:
    """Any head, with a body that often has the length that it tells, also where a shorter form would have done."""
    first, second = draw(st.sampled_from([0x81, 0x81, 0x82, 0x01, 0xC1, 0x00, 0x89])), draw(st.integers(0, 255))
    size = draw(sizes)
    told = {126: size.to_bytes(4, "big")[2:], 127: size.to_bytes(8, "big")}.get(second & 127, b"")
    body = size if told else draw(st.sampled_from([second & 127, second]))
    return bytes([first, second]) + told + b"x" * max(0, body + draw(st.sampled_from([0, 0, 0, -1, 1])))


@given(headed() | st.binary(max_size=20))
@example(b"\x81\x85" + b"x" * 0x85)  # masked: the length is 5
@example(b"\x81\x7e\x00\x05hello")  # a longer form than needed
def test_what_is_recognised_is_what_the_library_reads(data: bytes) -> None:
    message = whole_text(data, LIMIT)
    if message is not None:
        (frame,) = read(client(), data)
        assert (frame.opcode, frame.fin, bytes(frame.data)) == (Opcode.TEXT, True, message)


@given(st.lists(st.tuples(frames, st.booleans()), max_size=6), st.data())
def test_boundaries_are_known_however_the_stream_is_cut(stream: list[tuple[Frame, bool]], data: st.DataObject) -> None:
    parts = [written(frame, mask=mask) for frame, mask in stream]
    ends = {0, *accumulated(parts)}
    size = max(ends)
    boundaries = Boundaries()
    cuts = sorted(data.draw(st.lists(st.integers(0, size) | st.sampled_from(sorted(ends)), max_size=12)))
    for start, end in pairwise([0, *cuts, size]):
        boundaries.follow(b"".join(parts)[start:end])
        assert boundaries.between == (end in ends)


@given(st.lists(frames, min_size=1, max_size=3))
def test_boundaries_are_known_byte_by_byte(stream: list[Frame]) -> None:
    parts = [written(Frame(frame.opcode, frame.data[:300], frame.fin)) for frame in stream]
    ends, boundaries = set(accumulated(parts)), Boundaries()
    for at, byte in enumerate(b"".join(parts), start=1):
        boundaries.follow(bytes([byte]))
        assert boundaries.between == (at in ends)


def accumulated(parts: list[bytes]) -> Iterator[int]:
    """Where each part ends."""
    at = 0
    for part in parts:
        at += len(part)
        yield at
