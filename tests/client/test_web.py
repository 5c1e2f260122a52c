"""web.py: one bounded HTTP request. What a server's answers mean is in test_discovery and test_http."""

from __future__ import annotations

import socket
from contextlib import ExitStack, aclosing

import pytest

from openenv_client.errors import ServerUnreachable
from openenv_client.web import HttpClient, Page


async def test_a_host_that_takes_no_connection_is_unreachable_after_the_connect_timeout() -> None:
    with ExitStack() as stack:
        full = stack.enter_context(socket.socket())
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(3):  # fills the backlog: the kernel answers no further connection
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        client = HttpClient(f"http://127.0.0.1:{full.getsockname()[1]}", connect_timeout_s=0.05, max_body_bytes=1000)
        async with aclosing(client):
            with pytest.raises(ServerUnreachable, match=r"no connection within 0\.05 s"):
                await client.fetch("GET", "/health")


def test_an_excerpt_is_short_and_readable_whatever_the_body() -> None:
    assert Page("u", 500, b"  Internal \xff  ").excerpt == "Internal \N{REPLACEMENT CHARACTER}"
    assert Page("u", 500, b"x" * 301).excerpt == "x" * 300 + "..."


def test_only_an_object_is_a_json_object() -> None:
    assert Page("u", 200, b'{"a": 1}').json_object() == {"a": 1}
    with pytest.raises(ValueError, match="int, not an object"):
        Page("u", 200, b"1").json_object()
    with pytest.raises(ValueError, match="no JSON .*: 'hello'"):
        Page("u", 200, b"hello").json_object()
