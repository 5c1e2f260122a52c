"""Everything that can go wrong between us and an environment server, as one tree.

    OpenEnvError
    ├── ServerUnreachable (ConnectionError)      no TCP connection, no HTTP answer
    ├── ConnectFailed (ConnectionError)          a client could not connect, for the reason that it names
    ├── NotAnEnvironment                         something answers, but it is no OpenEnv server that we can use
    ├── WebSocketRefused (ConnectionError)       the `/ws` handshake got an HTTP error instead
    ├── SessionRefused (RuntimeError)            the handshake was accepted, then the server refused the session
    │   ├── CapacityReached                      no free slot; carries active_sessions, max_sessions
    │   └── FactoryFailed                        the server could not build its environment
    ├── EnvironmentFault (RuntimeError)          an error frame that answers a request; the session goes on
    │   └── InvalidArguments                     the gateway refused the action; the environment was not touched
    ├── ReplyTimeout (TimeoutError)              sent, but no reply in time; the connection now owes one reply
    ├── ReplyOwed (RuntimeError)                 a call on a connection that still owes a reply
    ├── LateReply (RuntimeError)                 the outcome of an earlier step came late; the step at hand was not sent
    ├── ToolFailed (RuntimeError)                a tool did not do what it was called for
    ├── EpisodeLost (RuntimeError)               the connection broke; the episode on it is gone
    ├── BadReply (RuntimeError)                  a reply that is not an OpenEnv frame
    └── ProviderError (RuntimeError)             a provider could not do what was asked
        └── LaunchFailed                         a server did not come up; carries its last log lines
            └── LaunchTimeout (TimeoutError)     it runs, but was not ready in time

Each class carries a stable `code`, whether trying again can help (`retryable`), and `next_step`: what a person does next.
The built-in bases are what user code written for OpenEnv's own client catches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class OpenEnvError(Exception):
    """Base of all errors of this package. `str()` is one sentence that says what happened and why."""

    code: str = "OPENENV_ERROR"
    retryable: bool = False
    next_step: str = "See the message."


class ServerUnreachable(OpenEnvError, ConnectionError):
    """No connection to the server, or no answer over HTTP in time."""

    code = "SERVER_UNREACHABLE"
    retryable = True
    next_step = "Check that the environment server runs and that its URL is right, then try again."

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"Cannot reach the environment server at {url}: {reason}")
        self.url, self.reason = url, reason


class NotAnEnvironment(OpenEnvError):
    """Something answers at the URL, but not as an OpenEnv environment server that we can use."""

    code = "NOT_AN_ENVIRONMENT"
    next_step = "Point the URL at the root of an OpenEnv server (package openenv or openenv-core, 0.2 or newer)."

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"{url} is not a usable OpenEnv environment server: {reason}")
        self.url, self.reason = url, reason


class ConnectFailed(OpenEnvError, ConnectionError):
    """A client could not connect. The cause is in `__cause__`, and its code and next step are this error's too."""

    code = "CONNECT_FAILED"
    retryable = True
    next_step = ServerUnreachable.next_step

    def __init__(self, url: str, cause: BaseException) -> None:
        why = cause.reason if isinstance(cause, (ServerUnreachable, NotAnEnvironment)) else cause
        super().__init__(f"Failed to connect to {url}: {why}")
        self.url = url
        if isinstance(cause, OpenEnvError):
            self.code, self.retryable, self.next_step = cause.code, cause.retryable, cause.next_step


class WebSocketRefused(OpenEnvError, ConnectionError):
    """The server answered the WebSocket handshake with an HTTP status of its own."""

    code = "WEBSOCKET_REFUSED"
    next_step = "The server has no environment sessions on /ws at this URL: check the URL and the server's version."

    def __init__(self, url: str, status: int) -> None:
        super().__init__(f"The server refused the WebSocket handshake at {url} with HTTP {status}")
        self.url, self.status = url, status


class SessionRefused(OpenEnvError, RuntimeError):
    """The server accepted the handshake and then refused to give a session (an unsolicited first error frame)."""

    code = "SESSION_REFUSED"
    next_step = "See the server's log."

    def __init__(self, message: str, code: str, data: Mapping[str, Any]) -> None:
        super().__init__(f"Server error: {message} (code: {code})")
        self.message, self.code, self.data = message, code, data


class CapacityReached(SessionRefused):
    """Every session slot of the server is taken. `active_sessions` and `max_sessions` are None if the server named none."""

    retryable = True
    next_step = "Wait until a session ends, or raise the server's max_concurrent_envs (or the gateway's max_servers)."

    def __init__(self, message: str, data: Mapping[str, Any]) -> None:
        super().__init__(message, "CAPACITY_REACHED", data)
        self.active_sessions = _count(data.get("active_sessions"))
        self.max_sessions = _count(data.get("max_sessions"))


class FactoryFailed(SessionRefused):
    """The server's environment factory raised: no session can be had although `/health` may be fine. `log` holds the last
    lines of a server that we launched, which nobody else can see; empty for any other."""

    next_step = "The environment itself fails to start: see the server's log for the exception in its factory."
    log: str = ""

    def __init__(self, message: str, data: Mapping[str, Any]) -> None:
        super().__init__(message, "FACTORY_ERROR", data)


class EnvironmentFault(OpenEnvError, RuntimeError):
    """The environment answered a request with an error frame. `errors` holds pydantic's field errors, if any."""

    next_step = "Correct the action and try again; the episode goes on."

    def __init__(self, message: str, code: str, errors: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__(f"Server error: {message} (code: {code})")
        self.message, self.code, self.errors = message, code, tuple(errors)


class InvalidArguments(EnvironmentFault):
    """The gateway refused an action or arguments by the environment's own schema: nothing was sent (production mode only;
    in simulation mode the environment's server says what it thinks of them). `errors` are the fields at fault, if told."""

    next_step = "Correct the action and try again; the environment was not touched."

    def __init__(self, message: str, code: str = "INVALID_ARGUMENTS", errors: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__(message, code, errors)


class ReplyTimeout(OpenEnvError, TimeoutError):
    """A request was sent and no reply came in time. Its outcome is unknown; the connection owes one reply."""

    code = "TIMEOUT"
    next_step = "The request was sent and may still be carried out: ask for the state before acting again."

    def __init__(self, what: str, seconds: float) -> None:
        super().__init__(f"No reply to {what} within {seconds:g} s; it was sent and its outcome is unknown")
        self.what, self.seconds = what, seconds


class ReplyOwed(OpenEnvError, RuntimeError):
    """A request on a connection whose last request is still unanswered: it was not sent."""

    code = "REPLY_OWED"
    retryable = True
    next_step = "Collect the owed reply first."

    def __init__(self, what: str) -> None:
        super().__init__(f"The environment still owes the reply to an earlier {what}; nothing was sent")
        self.what = what


class LateReply(OpenEnvError, RuntimeError):
    """An earlier step (or reset), unanswered in its time, has ended meanwhile. The step that raises this was not sent.

    `what` is "step" or "reset", `payload` its reply as the server sent it (None if it failed: then `__cause__` says how),
    `result` what the client's `_parse_result` makes of it.
    """

    code = "LATE_REPLY"
    retryable = True
    next_step = "Look at the earlier outcome (`result`) and decide again: the episode goes on."

    def __init__(self, what: str, payload: Mapping[str, Any] | None) -> None:
        super().__init__(f"The previous {what} finished late; its outcome is in this error. The step at hand was not sent")
        self.what, self.payload = what, payload
        self.result: Any = None


class ToolFailed(OpenEnvError, RuntimeError):
    """A tool was called and did not do it. `kind` is the environment's word for why (`tool_not_found`, `invalid_args`,
    `execution_error`, `timeout` ...), None where it gives none."""

    code = "TOOL_FAILED"
    next_step = "Correct the tool's name or arguments; the episode goes on."

    def __init__(self, name: str, message: str, kind: str | None = None) -> None:
        super().__init__(f"Tool '{name}' failed: {message}" + (f" (type: {kind})" if kind else ""))
        self.name, self.message, self.kind = name, message, kind


class EpisodeLost(OpenEnvError, RuntimeError):
    """The connection to the environment is gone, and with it the episode that was played on it."""

    code = "EPISODE_LOST"
    next_step = "Call reset to start a new episode."

    def __init__(self, reason: str) -> None:
        super().__init__(f"The episode is lost: {reason}")
        self.reason = reason


class BadReply(OpenEnvError, RuntimeError):
    """The server sent something that is not an OpenEnv reply frame. `field` names the offending part."""

    code = "BAD_REPLY"
    next_step = "The server does not speak OpenEnv's protocol as expected: check its version."

    def __init__(self, field: str, found: str) -> None:
        super().__init__(f"The server's reply is not an OpenEnv frame: {field} is {found}")
        self.field, self.found = field, found


class ProviderError(OpenEnvError, RuntimeError):
    """A provider could not do what was asked."""

    code = "PROVIDER_ERROR"
    next_step = "See the message; correct the environment's source or options."


class LaunchFailed(ProviderError):
    """A launched server did not become ready. `log` holds its last output lines, newest last."""

    code = "LAUNCH_FAILED"
    next_step = "Read the server's last lines; run its command by hand to see the whole failure."

    def __init__(self, what: str, reason: str, log: str = "") -> None:
        tail = f"\nLast lines of its log:\n{log}" if log else ""
        super().__init__(f"Launching {what} failed: {reason}{tail}")
        self.what, self.reason, self.log = what, reason, log


class LaunchTimeout(LaunchFailed, TimeoutError):
    """A launched server did not answer `/health` with 200 in time. It has been stopped."""

    code = "LAUNCH_TIMEOUT"
    retryable = True
    next_step = "Allow more time if the server is only slow; else read its last lines: does it listen on the port it is given?"


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
