"""ready.py: 200 from /health, within the time, and no longer than there is something to wait for."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from openenv_client.providers.ready import is_loopback, wait_until_healthy


class Answers(BaseHTTPRequestHandler):
    """Gives the scripted statuses in turn, the last for ever. The status 0 hangs up instead of answering."""

    script: ClassVar[list[int]] = []
    seen: ClassVar[list[str | None]] = []

    def do_GET(self) -> None:
        self.seen.append(self.headers.get("Authorization"))
        status = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if status:
            self.send_response(status)
            self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing on stderr."""


@pytest.fixture
def url() -> Iterator[str]:
    Answers.seen.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join(5)


def just_wait(seconds: float) -> None:
    threading.Event().wait(seconds)


def test_it_waits_through_other_answers_until_200(url: str) -> None:
    Answers.script = [503, 404, 0, 200]
    wait_until_healthy(url, 5, just_wait)
    assert Answers.seen == [None] * 4


def test_it_sends_the_headers(url: str) -> None:
    Answers.script = [200]
    wait_until_healthy(url, 5, just_wait, {"Authorization": "Bearer x"})
    assert Answers.seen == ["Bearer x"]


def test_no_proxy_is_asked_for_a_loopback_host(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    Answers.script = [200]
    wait_until_healthy(url, 1, just_wait)
    assert Answers.seen == [None]


def test_too_late_says_how_long_and_what_came_last(url: str) -> None:
    Answers.script = [503]
    with pytest.raises(TimeoutError, match=r"within 0\.2 seconds \(last answer of /health: HTTP 503\)"):
        wait_until_healthy(url, 0.2, just_wait)


def test_a_closed_port_is_told_as_such() -> None:
    with pytest.raises(TimeoutError, match="Connection refused"):
        wait_until_healthy("http://127.0.0.1:1", 0.1, just_wait)


class Ended(Exception):
    """What a pause raises when the server has ended."""


def test_nothing_is_waited_for_when_the_pause_says_that_the_server_ended() -> None:
    def ended(seconds: float) -> None:
        raise Ended

    began = time.monotonic()
    with pytest.raises(Ended):
        wait_until_healthy("http://127.0.0.1:1", 60, ended)
    assert time.monotonic() - began < 5


def test_an_answer_from_somebody_else_does_not_hide_that_the_server_ended(url: str) -> None:
    def ended(seconds: float) -> None:
        raise Ended

    Answers.script = [200]
    with pytest.raises(Ended):
        wait_until_healthy(url, 60, ended)


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("localhost", True), ("127.0.0.1", True), ("127.8.8.8", True), ("::1", True)]
    + [("127.0.0.1.example.com", False), ("localhost.example.com", False), ("10.0.0.1", False), ("", False)],
)
def test_only_this_machine_is_loopback(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback
