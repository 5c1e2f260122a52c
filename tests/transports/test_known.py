"""transports/known.py: what is remembered of a head, and which requests repeat it. See also test_front_equivalence.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testkit.gateways import environment_settings, gateway_settings
from testkit.raw_http import post

from openenv_gateway.transports import token_file
from openenv_gateway.transports.app import build_app
from openenv_gateway.transports.gate import Gate
from openenv_gateway.transports.gateway import Gateway
from openenv_gateway.transports.guards import Refused
from openenv_gateway.transports.known import LONGEST, KnownHead, learn

MOST = 1000
"""Bytes of a body."""
TOKEN = "t" * 32


def gate(tokens: Path | None = None) -> Gate:
    """Of a gateway that runs no environment."""
    settings = gateway_settings(environment_settings("http://127.0.0.1:1"), max_body_bytes=MOST, token_file=tokens)
    app = build_app(Gateway(settings))
    assert isinstance(app, Gate)
    return app


GATE = gate()


def learnt(request: bytes) -> KnownHead:
    known = learn(request, GATE)
    assert known is not None
    return known


def test_a_plain_post_is_known_by_its_head_with_its_query_and_headers() -> None:
    known = learnt(post(b"{}", "Mcp-Session-Id:  one ", "X-Twice: a", "X-Twice: b", target="/envs/counting/mcp?session=two"))
    assert (known.head.method, known.head.session_id, known.head.lane_name) == ("POST", "one", "two")
    assert known.head.accepted.events and known.head.headers.doubled(frozenset({"x-twice"})) == "x-twice"
    assert known.place is GATE.place("/envs/counting/mcp") is GATE.place("/mcp")


@given(st.binary(max_size=MOST), st.binary(max_size=MOST))
def test_the_same_head_gives_the_body_whatever_its_length(first: bytes, second: bytes) -> None:
    known = learnt(post(first))
    assert known.body_of(post(first)) == first
    assert known.body_of(post(second)) == second


@given(st.binary(max_size=MOST), st.data())
def test_neither_a_part_nor_more_nor_another_head_is_taken_for_it(body: bytes, data: st.DataObject) -> None:
    request = post(body)
    known, head = learnt(request), len(request) - len(body)
    assert known.body_of(request[: data.draw(st.integers(0, head - 1))]) is None
    assert known.body_of(request + data.draw(st.binary(min_size=1, max_size=30))) is None
    digits = request.index(b"Content-Length: ") + 16
    at = data.draw(st.integers(0, head - 1).filter(lambda at: not digits <= at < digits + len(str(len(body)))))
    other = bytes([data.draw(st.integers(0, 255).filter(lambda byte: byte != request[at]))])
    assert known.body_of(request[:at] + other + request[at + 1 :]) is None


@given(st.binary(min_size=1, max_size=MOST), st.data())
def test_of_a_body_that_has_come_in_part_it_is_known_how_much_is_missing(body: bytes, data: st.DataObject) -> None:
    known, come = learnt(post(body)), data.draw(st.integers(0, len(body)))
    request = post(body)
    assert known.body_of(request[: len(request) - len(body) + come]) == body[:come]
    assert known.missing == len(body) - come


@pytest.mark.parametrize("digits", [b"", b"-2", b"+2", b" 2", b"2 ", b"0x2", b"2_", b"\xc2\xb2", b"2,2", b"1" * 30])
def test_what_is_no_plain_number_is_no_length(digits: bytes) -> None:
    assert learnt(post(b"{}")).body_of(post(b"{}").replace(b"Length: 2", b"Length: " + digits)) is None


def test_a_body_that_is_too_large_is_left_to_who_tells_so() -> None:
    assert learnt(post(b"{}")).body_of(post(b"x" * MOST)) == b"x" * MOST
    assert learnt(post(b"{}")).body_of(post(b"x" * (MOST + 1))) is None
    assert learnt(post(b"{}")).body_of(post(b"x" * (MOST + 1))[:-500]) is None


@pytest.mark.parametrize(
    "request_",
    [
        post(b"{}").replace(b"POST", b"PUT"),
        post(b"{}").replace(b"POST /mcp", b"POST /health"),
        post(b"{}").replace(b"POST /mcp", b"POST /%6dcp"),
        post(b"{}").replace(b"POST /mcp", b"POST http://127.0.0.1"),
        post(b"{}").replace(b"/1.1", b"/1.0"),
        post(b"{}").replace(b"\r\n\r\n", b"\r\n"),
        post(b"{}").replace(b"Content-Length: 2\r\n", b""),
        post(b"{}").replace(b"Accept: application/json", b"Accept: text/html").replace(b"text/event-stream", b"text/html"),
        post(b"{}").replace(b"Content-Type: application/json", b"Content-Type: text/plain"),
        post(b"{}").replace(b"Host: 127.0.0.1", b"Host: evil.example"),
        post(b"{}", "Host: 127.0.0.1"),
        post(b"{}", "Origin: http://evil.example"),
        post(b"{}", "Content-Length: 2"),
        post(b"{}", "Transfer-Encoding: chunked"),
        post(b"{}", "Expect: 100-continue"),
        post(b"{}", "Connection: close"),
        post(b"{}", "Connection: keep-alive, Upgrade", "Upgrade: h2c"),
        post(b"{}", f"X-Long: {'y' * LONGEST}"),
        post(b"{}", "X-Folded: a\r\n b"),
        post(b"{}", "X-Bare: a\nX-Line: b"),
        post(b"{}", "X-Null: \0"),
    ],
    ids=lambda request_: repr(request_[:24] + request_[-40:]),
)
def test_what_is_unusual_is_not_learnt(request_: bytes) -> None:
    assert learn(request_, GATE) is None


def test_who_calls_is_asked_again_when_the_tokens_have_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_file, "LOOK_EVERY_S", 0.0)
    path = tmp_path / "tokens"
    path.write_text(f"agent blue {TOKEN}")
    path.chmod(0o600)
    guarded = gate(path)
    known = learn(post(b"{}", f"Authorization: Bearer {TOKEN}"), guarded)
    assert known is not None
    assert known.principal(guarded) is known.principal(guarded)
    path.write_text(f"agent green {TOKEN}")
    assert known.principal(guarded).name == "green"
    path.write_text(f"agent green {'x' * 32}")
    with pytest.raises(Refused, match="unknown or was withdrawn"):
        known.principal(guarded)
    nobody = learn(post(b"{}"), guarded)
    assert nobody is not None
    with pytest.raises(Refused, match="wants a token"):
        nobody.principal(guarded)
