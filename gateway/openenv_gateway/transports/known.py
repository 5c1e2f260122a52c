"""A head that came before on the same connection: clients repeat theirs, but for the length of the body.

What follows from a head alone is found out once: which place it is for, that its Host, Origin and Accept may pass. Equal bytes
say the same again. Whether its token still counts is asked for every request.
"""

from __future__ import annotations

import re

import httptools

from openenv_gateway.transports.gate import Asked, Gate
from openenv_gateway.transports.guards import Refused
from openenv_gateway.transports.headers import Head
from openenv_gateway.transports.streamable_http import StreamableHttp
from openenv_gateway.transports.tokens import Principal

LONGEST = 16 * 2**10
"""Bytes of a head that may be remembered."""
END = b"\r\n\r\n"

_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,9})(?=\r\n)", re.IGNORECASE)
_MOST_DIGITS = 9
_HINDERING = frozenset({b"transfer-encoding", b"expect", b"upgrade", b"connection", b"content-length"})
"""Headers that say how a message is framed, or what becomes of the connection. A remembered head has one Content-Length, and
of the others at most `Connection: keep-alive`."""


class KnownHead:
    """A POST's head for one MCP place, checked. `head` is shared by all requests that repeat it. `missing`: how many bytes of
    the body that `body_of` was asked for last have not come yet."""

    def __init__(self, data: bytes, length: re.Match[bytes], end: int, read: _Read, place: StreamableHttp) -> None:
        self._before, self._after = data[: length.start(1)], data[length.end(1) : end]
        self.place, self.asked = place, Asked.of(read.headers)
        self.head = Head("POST", read.headers, read.query)
        self.missing = 0
        self._path = read.path
        self._admitted: tuple[object, Principal] | None = None

    def principal(self, gate: Gate) -> Principal:
        """Who calls now. Raises Refused."""
        grants = gate.grants
        if self._admitted is None or self._admitted[0] is not grants:
            self._admitted = grants, gate.admit(self._path, self.asked)
        return self._admitted[1]

    def body_of(self, data: bytes) -> bytes | None:
        """The body at the end of `data`, if `data` begins one request with this head and goes no further: the whole body, or
        what has come of it (see `missing`). Else None, also where it is larger than may be."""
        if not data.startswith(self._before):
            return None
        start = len(self._before)
        end = data.find(b"\r", start, start + _MOST_DIGITS + 1)
        if end < 0 or not data.startswith(self._after, end):
            return None
        digits, at = data[start:end], end + len(self._after)
        if not digits.isdigit():
            return None
        self.missing = int(digits) - (len(data) - at)
        return data[at:] if self.missing >= 0 and int(digits) <= self.place.max_body_bytes else None


def learn(data: bytes, gate: Gate) -> KnownHead | None:
    """What can be known of the head at the beginning of `data`; None unless it is a plain POST to an MCP place that may pass.

    Whatever is not learnt goes the ordinary way, which also tells what is wrong with it.
    """
    end = data.find(END, 0, LONGEST)
    if end < 0 or not data.startswith(b"POST "):
        return None
    end += len(END)
    length = _LENGTH.search(data, 0, end)
    read = _Read()
    if length is None or data.count(b"\n", 0, end) != data.count(b"\r\n", 0, end) or not read.feed(data[:end]):
        return None
    place = gate.place(read.path)
    if not isinstance(place, StreamableHttp):
        return None
    known = KnownHead(data, length, end, read, place)
    try:
        gate.check_names(known.asked)
        place.check_post(known.head)
    except Refused:
        return None
    return known


class _Read:
    """A head as the parser reads it that reads every other request too."""

    def __init__(self) -> None:
        self.headers: list[tuple[bytes, bytes]] = []
        self.path = ""
        self.query = b""
        self._url = b""
        self._is_complete = False
        self._parser = httptools.HttpRequestParser(self)

    def feed(self, head: bytes) -> bool:
        """Whether it is the whole head of a request that may be remembered."""
        try:
            self._parser.feed_data(head)
            url = httptools.parse_url(self._url)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            return False
        # A path may be missing ("http://host"), or hold any bytes; then it is no place.
        self.path, self.query = (url.path or b"").decode("latin-1"), url.query or b""
        return self._is_complete and self._is_plain()

    def _is_plain(self) -> bool:
        parser = self._parser
        if parser.get_http_version() != "1.1" or parser.should_upgrade() or not parser.should_keep_alive():
            return False
        framing = [(name, value) for name, value in self.headers if name in _HINDERING]
        others = [one for one in framing if one[0] != b"content-length"]
        return len(framing) == len(others) + 1 and all(
            (name, value.lower()) == (b"connection", b"keep-alive") for name, value in others
        )

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self._is_complete = True
