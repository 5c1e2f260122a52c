from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from openenv_client.mcp.events import EventReader

STREAM = b': hello\r\n\r\nevent: message\ndata: {"a":\ndata: 1}\n\ndata:two\r\rid: 7\n\ndata\n\ndata: three\r\n\r\ndata: cut'


def read(*pieces: bytes) -> list[bytes]:
    reader = EventReader()
    return [event for piece in pieces for event in reader.feed(piece)]


def test_events_are_told_from_comments_other_fields_and_what_is_not_complete() -> None:
    assert read(STREAM) == [b'{"a":\n1}', b"two", b"", b"three"]


@given(st.sets(st.integers(0, len(STREAM))))
def test_it_does_not_matter_how_a_stream_is_cut_into_pieces(cuts: set[int]) -> None:
    places = [0, *sorted(cuts), len(STREAM)]
    assert read(*[STREAM[start:end] for start, end in zip(places, places[1:], strict=False)]) == read(STREAM)


def test_a_line_separator_of_unicode_ends_no_line() -> None:
    text = 'data: "a\u2028b"\n\n'.encode()
    assert read(text) == ['"a\u2028b"'.encode()]
