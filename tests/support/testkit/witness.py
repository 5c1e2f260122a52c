"""Stands between a client and the gateway and holds every message of the gateway against the official models.

    with watching("demo") as watched:
        ... clients connect to watched.url("demo") ...

Independent of any client: it reads what goes over the wire, of every revision that its client speaks.
"""

from __future__ import annotations

import http.client
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import mcp_types
import pydantic
from jsonschema import Draft202012Validator, ValidationError
from mcp_types.methods import parse_server_notification, validate_server_result

import openenv_gateway_schemas as schemas
from testkit import cli
from testkit.judges import judged

_ERROR = Draft202012Validator(schemas.load("error_data"))
_STRUCTURED_SINCE = "2025-06-18"
_HOP = ("connection", "keep-alive", "transfer-encoding", "content-length", "host")


class Verdicts:
    """`seen` counts the judged messages by (revision, method); `faults` are the judges' words about those not valid."""

    def __init__(self) -> None:
        self.seen: Counter[tuple[str, str]] = Counter()
        self.faults: list[str] = []
        self._revisions: dict[str | None, str] = {}

    def judge(self, request: dict[str, Any], response: dict[str, Any], revision: str | None, session: str | None) -> None:
        """One request and its response. `revision`: what the request's header says; `session`: its MCP session."""
        method = str(request.get("method"))
        if method == "initialize" and "result" in response:
            self._revisions[session] = response["result"]["protocolVersion"]
        meta = (request.get("params") or {}).get("_meta") or {}
        spoken = meta.get("io.modelcontextprotocol/protocolVersion") or self._spoken(revision, session)
        self._note(spoken, method, response, lambda: _judge(request, response, method, spoken))

    def judge_notification(self, message: dict[str, Any], revision: str | None, session: str | None) -> None:
        """One message that the gateway sent of its own accord: it must be a notification, never a request."""
        method, spoken = str(message["method"]), self._spoken(revision, session)
        self._note(spoken, method, message, lambda: _judge_notification(message, method, spoken))

    def _spoken(self, revision: str | None, session: str | None) -> str:
        return revision or self._revisions.get(session, "2025-03-26")

    def _note(self, revision: str, method: str, message: dict[str, Any], judge: Callable[[], None]) -> None:
        self.seen[revision, method] += 1
        try:
            judge()
        except (pydantic.ValidationError, ValidationError, ValueError, KeyError, AssertionError) as fault:
            self.faults.append(f"{revision} {method}: {fault}\n{json.dumps(message)[:2000]}")

    def check(self) -> None:
        """Raises AssertionError when a message was not valid, or when there was none to judge."""
        assert not self.faults, "\n\n".join(self.faults)
        assert self.seen, "no message passed the witness"


def _judge(request: dict[str, Any], response: dict[str, Any], method: str, revision: str) -> None:
    assert response.get("jsonrpc") == "2.0" and response.get("id") == request["id"], "not the answer to this request"
    if "error" in response:
        mcp_types.JSONRPCError.model_validate(response)
        if "code" in (response["error"].get("data") or {}):
            _ERROR.validate(response["error"]["data"])
        return
    mcp_types.JSONRPCResponse.model_validate(response)
    validate_server_result(method, revision, response["result"])
    if method == "tools/call" and revision >= _STRUCTURED_SINCE:
        judged(response["result"])


def _judge_notification(message: dict[str, Any], method: str, revision: str) -> None:
    assert "id" not in message, "a request of the server, which no client of ours can answer"
    mcp_types.JSONRPCNotification.model_validate(message)
    parse_server_notification(method, revision, message.get("params"))


class Witness(Verdicts):
    """An HTTP server on loopback that forwards everything to `target` and judges each JSON-RPC answer that comes back."""

    def __init__(self, target: str) -> None:
        super().__init__()
        parts = urlsplit(target)
        assert parts.hostname is not None and parts.port is not None
        self._target = (parts.hostname, parts.port)
        handler = type("Handler", (_Handler,), {"witness": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="witness", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def url(self, url: str) -> str:
        """The same URL, seen through the witness."""
        return urlsplit(url)._replace(netloc=f"127.0.0.1:{self._server.server_port}").geturl()

    def connection(self) -> http.client.HTTPConnection:
        """A connection to the gateway."""
        return http.client.HTTPConnection(*self._target, timeout=120)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    witness: Witness

    def handle(self) -> None:
        with suppress(ConnectionError):  # a client may hang up at any time, also before its answer
            super().handle()

    def setup(self) -> None:
        super().setup()
        self._gateway = self.witness.connection()

    def finish(self) -> None:
        self._gateway.close()
        super().finish()

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing: what matters is in the verdicts."""

    def _forward(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        kept = {name: value for name, value in self.headers.items() if name.lower() not in _HOP}
        self._gateway.request(self.command, self.path, body or None, kept)
        answer = self._gateway.getresponse()
        request = json.loads(body) if self.command == "POST" else {}
        if (answer.getheader("content-type") or "").startswith("text/event-stream"):
            self._stream(request, answer)
        else:
            self._pass_on(request, answer)

    def _pass_on(self, request: dict[str, Any], answer: http.client.HTTPResponse) -> None:
        content = answer.read()
        if "id" in request:
            self._judge(request, answer, json.loads(content))
        elif request and answer.status == 202 and content:
            self.witness.faults.append(f"a notification got a body: {content[:200]!r}")
        self._start(answer)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _stream(self, request: dict[str, Any], answer: http.client.HTTPResponse) -> None:
        """Pass on event by event, each judged before it is sent."""
        self._start(answer)
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        for event in _events(answer):
            data = b"\n".join(line.removeprefix(b"data:").strip() for line in event.splitlines() if line.startswith(b"data:"))
            if data:
                self._judge(request, answer, json.loads(data))
            self.wfile.write(event)

    def _start(self, answer: http.client.HTTPResponse) -> None:
        self.send_response(answer.status)
        for name, value in _end_to_end(answer.getheaders()):
            self.send_header(name, value)

    def _judge(self, request: dict[str, Any], answer: http.client.HTTPResponse, message: dict[str, Any]) -> None:
        session = self.headers.get("mcp-session-id") or answer.getheader("mcp-session-id")
        revision = self.headers.get("mcp-protocol-version")
        if "method" in message:
            self.witness.judge_notification(message, revision, session)
        else:
            self.witness.judge(request, message, revision, session)

    do_POST = do_GET = do_DELETE = _forward


def _events(answer: http.client.HTTPResponse) -> Iterator[bytes]:
    """Server-sent events with their closing blank line, as they come."""
    event = b""
    while line := answer.readline():
        event += line
        if not line.strip():
            yield event
            event = b""


def _end_to_end(headers: Iterable[tuple[str, str]]) -> Iterable[tuple[str, str]]:
    return ((name, value) for name, value in headers if name.lower() not in (*_HOP, "date", "server"))


class Watched:
    """A gateway and the witness in front of it."""

    def __init__(self, gateway: cli.GatewayProcess, witness: Witness) -> None:
        self.gateway, self.witness = gateway, witness

    def url(self, environment: str, session: str | None = None) -> str:
        """The MCP URL of an environment, through the witness; with `session`, the one of that named session."""
        url = self.witness.url(self.gateway.url(environment))
        return url if session is None else f"{url}?session={session}"


@contextmanager
def watching(*specs: str, config: Path | None = None, env: Mapping[str, str] | None = None) -> Iterator[Watched]:
    """A real gateway in front of these environments; at the end it must stop well, and every message must have been valid."""
    with cli.serving(*specs, config=config, env=env) as gateway, Witness(gateway.base_url) as witness:
        yield Watched(gateway, witness)
    witness.check()
