"""transports/headers.py: what a request's headers say, read from their bytes."""

from __future__ import annotations

import pytest

from openenv_gateway.transports.headers import LONGEST, Headers


def test_values_come_without_blanks_and_the_last_of_two_counts() -> None:
    headers = Headers([(b"host", b" a "), (b"x-name", b"\xe4"), (b"host", b"b")])
    assert dict(headers) == {"host": "b", "x-name": "\xe4"}
    assert ("host" in headers, "accept" in headers, len(headers)) == (True, False, 2)
    assert headers.get("accept") is None


def test_a_header_that_came_twice_is_found_among_those_that_matter() -> None:
    twice = [(b"a", b"1"), (b"b", b"1"), (b"b", b"2"), (b"a", b"1")]
    assert Headers(twice).doubled(frozenset({"a", "b"})) == "b"
    assert Headers(twice).doubled(frozenset({"a"})) == "a"
    assert Headers(twice).doubled(frozenset({"c"})) is None
    assert Headers(twice[:2]).doubled(frozenset({"a", "b"})) is None


@pytest.mark.parametrize(
    ("values", "json", "events", "anything"),
    [
        ((), True, False, True),
        ((b"",), True, False, True),
        ((b"*/*",), True, False, True),
        ((b"Application/JSON;q=0.5 , text/html",), True, False, False),
        ((b"application/*,text/*",), True, True, False),
        ((b"text/event-stream",), False, True, False),
        ((b"text/html", b"text/event-stream; q=1"), False, True, False),
        ((b"text/html",), False, False, False),
        ((b"text/html," * LONGEST + b"application/json",), True, False, False),
    ],
)
def test_what_a_client_accepts(values: tuple[bytes, ...], json: bool, events: bool, anything: bool) -> None:
    headers = Headers([(b"host", b"a"), *((b"accept", value) for value in values)])
    assert headers.accepted() == (json, events, anything)
    assert headers.accepted() == (json, events, anything)
