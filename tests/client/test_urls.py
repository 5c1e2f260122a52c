"""urls.py: where a server's `/ws` and pages are, and what is no server URL."""

from __future__ import annotations

import pytest

from openenv_client.urls import http_url, is_loopback, shown, websocket_url


@pytest.mark.parametrize(
    ("base_url", "expected"),
    [
        ("http://host:8000", "ws://host:8000/ws"),
        ("https://host/", "wss://host/ws"),
        ("ws://host:1", "ws://host:1/ws"),
        ("wss://host/envs/chess/", "wss://host/envs/chess/ws"),
        ("localhost:8000", "ws://localhost:8000/ws"),
        ("host", "ws://host/ws"),
        ("http://[::1]:8000", "ws://[::1]:8000/ws"),
        ("http://host/envs/ws", "ws://host/envs/ws/ws"),
        ("http://host?session_id=abc", "ws://host/ws?session_id=abc"),
    ],
)
def test_the_websocket_is_below_the_base_url(base_url: str, expected: str) -> None:
    assert websocket_url(base_url) == expected


@pytest.mark.parametrize(
    ("base_url", "expected"),
    [
        ("http://host:8000/", "http://host:8000"),
        ("ws://host/a/", "http://host/a"),
        ("wss://host?session_id=abc", "https://host"),
        ("host:8000", "http://host:8000"),
    ],
)
def test_the_pages_are_at_the_base_url_over_http(base_url: str, expected: str) -> None:
    assert http_url(base_url) == expected


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("", "names no host"),
        ("http://", "names no host"),
        ("http://:8000", "names no host"),
        ("ftp://host", "scheme 'ftp'"),
        ("http://host:port", "[Pp]ort"),
        ("http://host:99999", "[Pp]ort"),
        ("http://[::1", "Invalid IPv6"),
        ("http://host/#top", "fragment"),
        ("http://ho st", "blank"),
        ("http://host/\x07", "control character"),
    ],
)
def test_what_is_no_server_url_is_refused_with_the_reason(url: str, fault: str) -> None:
    with pytest.raises(ValueError, match=fault) as caught:
        websocket_url(url)
    assert "Expected something like http://127.0.0.1:8000" in str(caught.value)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.9.10", "[::1]"])
def test_loopback_is_localhost_or_a_loopback_address(host: str) -> None:
    assert is_loopback(f"http://{host}:8000")


@pytest.mark.parametrize("host", ["127.0.0.1.example.com", "localhost.example.com", "10.0.0.1", "example.com"])
def test_a_name_that_only_looks_like_loopback_is_not(host: str) -> None:
    assert not is_loopback(f"http://{host}:8000")


def test_a_shown_url_holds_no_secret() -> None:
    assert shown("https://user:secret@host:1/ws?session_id=abc") == "https://host:1/ws"
