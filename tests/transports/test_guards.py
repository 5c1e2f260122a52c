"""Which Host and Origin may call, and how much they may send."""

from __future__ import annotations

import pytest
from starlette.types import Message

from openenv_gateway.transports.guards import HostGuard, Refused, check_content_type, is_loopback, read_body

GUARD = HostGuard.of(["Gateway.example"], ["https://Console.example/"])


@pytest.mark.parametrize(
    "host",
    ["localhost", "localhost:8700", "127.0.0.1:8700", "127.9.9.9", "[::1]:8700", "[::1]", "10.0.0.5:80", "gateway.example:443"],
)
def test_loopback_names_addresses_and_allowed_names_are_served(host: str) -> None:
    GUARD.check([host], [])


@pytest.mark.parametrize(
    "host",
    ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "[::1", "evil.example:8700", "evil@evil.example"],
)
def test_other_names_are_misdirected(host: str) -> None:
    with pytest.raises(Refused) as caught:
        GUARD.check([host], [])
    assert caught.value.status == 421


@pytest.mark.parametrize(
    "origin",
    ["http://localhost", "http://localhost:3000", "https://127.0.0.1", "http://[::1]:5", "https://console.example"],
)
def test_loopback_and_allowed_origins_may_call(origin: str) -> None:
    GUARD.check(["localhost"], [origin])


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "http://evil.example",
        "https://localhost.evil.example",
        "file://",
        "http://10.0.0.5",
        "https://gateway.example",
        "localhost",
        "http://[",
    ],
)
def test_other_origins_may_not(origin: str) -> None:
    with pytest.raises(Refused) as caught:
        GUARD.check(["localhost"], [origin])
    assert caught.value.status == 403


@pytest.mark.parametrize(
    ("hosts", "origins"), [([], []), (["a", "b"], []), (["localhost"], ["http://localhost", "http://localhost"])]
)
def test_missing_and_doubled_headers_are_refused(hosts: list[str], origins: list[str]) -> None:
    with pytest.raises(Refused) as caught:
        GUARD.check(hosts, origins)
    assert caught.value.status == 400


@pytest.mark.parametrize("value", [None, "", "text/plain", "application/jsonp", "text/json"])
def test_a_body_must_be_declared_as_json(value: str | None) -> None:
    with pytest.raises(Refused) as caught:
        check_content_type(value)
    assert caught.value.status == 415


@pytest.mark.parametrize("value", ["application/json", "Application/JSON; charset=utf-8"])
def test_json_may_carry_parameters(value: str) -> None:
    check_content_type(value)


class Body:
    """What an ASGI server hands over."""

    def __init__(self, *chunks: bytes, leaves: bool = False) -> None:
        self.messages: list[Message] = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]
        self.messages.append({"type": "http.disconnect"} if leaves else {"type": "http.request"})

    async def __call__(self) -> Message:
        return self.messages.pop(0)


async def test_a_body_comes_in_pieces() -> None:
    assert await read_body(Body(b"ab", b"c", b""), None, 3) == b"abc"


async def test_a_body_comes_in_one_piece() -> None:
    for body in (b"", b"abc"):
        messages = Body()
        messages.messages = [{"type": "http.request", "body": body, "more_body": False}]
        assert await read_body(messages, "3", 3) == body
    with pytest.raises(Refused, match="left"):
        await read_body(Body(leaves=True), None, 3)


@pytest.mark.parametrize(
    ("chunks", "declared"), [([b"abcd"], None), ([b"ab", b"cd"], None), ([b"a"], "4"), ([b"x"] * 40, "40")]
)
async def test_a_body_above_the_limit_is_refused(chunks: list[bytes], declared: str | None) -> None:
    with pytest.raises(Refused) as caught:
        await read_body(Body(*chunks), declared, 3)
    assert caught.value.status == 413


async def test_a_client_that_leaves_in_mid_body_is_noticed() -> None:
    with pytest.raises(Refused, match="left"):
        await read_body(Body(b"a", leaves=True), None, 3)


def test_which_addresses_are_this_machine_alone() -> None:
    assert [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "127.8.8.8")] == [True] * 4
    assert [is_loopback(host) for host in ("0.0.0.0", "::", "10.0.0.1", "example.org", "")] == [False] * 5
