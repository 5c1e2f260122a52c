"""output.py: the newest output is kept, however much there is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from openenv_client.providers.output import OutputRing


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_what_fits_is_kept_whole_in_whatever_pieces_it_came(pieces: list[bytes]) -> None:
    ring = OutputRing(keep_bytes=1000)
    for piece in pieces:
        ring.write(piece)
    assert ring.tail(10_000) == "\n".join(b"".join(pieces).decode("utf-8", "replace").splitlines())


def test_only_the_last_lines_are_given() -> None:
    ring = OutputRing()
    ring.write(b"one\ntwo\nthree\n")
    assert ring.tail(2) == "two\nthree"
    assert ring.tail(0) == ""


def test_of_a_long_output_the_end_is_kept_and_starts_with_a_whole_line() -> None:
    ring = OutputRing(keep_bytes=20)
    for number in range(100):
        ring.write(f"line {number}\n".encode())
    assert ring.tail(10) == "line 98\nline 99"


def test_a_single_endless_line_is_shown_from_where_it_is_kept() -> None:
    ring = OutputRing(keep_bytes=5)
    ring.write(b"abcdefghij")
    assert ring.tail(1) == "fghij"


def test_bytes_that_are_no_text_do_not_hide_the_rest() -> None:
    ring = OutputRing()
    ring.write(b"\xff\xfe broken\nfine\n")
    assert ring.tail(5) == "\ufffd\ufffd broken\nfine"
