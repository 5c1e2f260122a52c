"""testkit.witness: what it passes on, and what it says of messages that come as events."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.request import Request, urlopen

from testkit.witness import Witness

WAIT_S = 5
PROGRESS = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}}
PONG = {"jsonrpc": "2.0", "id": 1, "result": {}}


@contextmanager
def sending(*messages: dict[str, Any]) -> Iterator[tuple[str, threading.Event]]:
    """A server that answers with these messages as events, each but the first only once the event is set."""
    go_on = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            for message in messages:
                self.wfile.write(b": alive\n\ndata: " + json.dumps(message).encode() + b"\n\n")
                go_on.wait(WAIT_S)

        def log_message(self, format: str, *arguments: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", go_on
    finally:
        go_on.set()
        server.shutdown()
        server.server_close()
        thread.join(WAIT_S)


def ping(url: str) -> Request:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
    return Request(url, body, {"content-type": "application/json", "mcp-protocol-version": "2025-11-25"})


def test_an_event_is_passed_on_before_the_next_one_comes() -> None:
    with sending(PROGRESS, PONG) as (url, go_on), Witness(url) as witness:
        with urlopen(ping(witness.url(url)), timeout=WAIT_S) as answer:
            first = [answer.readline() for _ in range(4)]
            go_on.set()
            rest = answer.read()
    assert json.loads(first[2].removeprefix(b"data: ")) == PROGRESS
    assert json.loads(rest.split(b"data: ")[1]) == PONG
    assert dict(witness.seen) == {("2025-11-25", "notifications/progress"): 1, ("2025-11-25", "ping"): 1}
    witness.check()


def test_a_notification_that_is_not_valid_and_a_request_of_the_server_are_faults() -> None:
    wrong = {**PROGRESS, "params": {"progress": 1}}
    asking = {"jsonrpc": "2.0", "id": 7, "method": "sampling/createMessage", "params": {}}
    with sending(wrong, asking, PONG) as (url, go_on), Witness(url) as witness:
        go_on.set()
        with urlopen(ping(witness.url(url)), timeout=WAIT_S) as answer:
            answer.read()
    assert [fault.partition(":")[0] for fault in witness.faults] == [
        "2025-11-25 notifications/progress",
        "2025-11-25 sampling/createMessage",
    ]
