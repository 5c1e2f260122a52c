"""The old HTTP-only servers (openenv-core 0.1.x) behind the verbs of an EnvironmentSession.

Such a server has one environment that all its callers share, so there is no session to be had or refused and nothing to close:
whoever hands out HttpSessions gives a server to one caller at a time.

A request that outlives its timeout is not dropped: it goes on in the background, and `collect` gets its reply, late. Nothing
else is sent meanwhile, because the server would run it beside the unfinished one, on the same environment. When the connection
breaks instead, the request's outcome will never be known and the session ends with EpisodeLost; a `reset` on a new
HttpSession brings the environment back to a known state. Connections are not kept between requests, so a request never fails
just because the server was closing an idle one.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from typing import Any, Literal

from openenv_client.discovery import health
from openenv_client.errors import BadReply, EpisodeLost, NotAnEnvironment, ServerUnreachable
from openenv_client.frames import JsonObject, Kind
from openenv_client.inbox import Inbox
from openenv_client.lifecycle import OVER, Phase
from openenv_client.web import HttpClient, Page

_CLOSE_TIMEOUT_S = 1.0


class HttpSession:
    """An EnvironmentSession over POST /reset, POST /step and GET /state. Made by `open`; whoever opens it closes it.

    An HTTP error comes as an error frame: 422 as VALIDATION_ERROR with the server's field errors, 5xx as EXECUTION_ERROR whose
    message gives status and body (0.1.x answers every bad action with a bare 500). Any other status is a BadReply.
    """

    def __init__(self, client: HttpClient) -> None:
        self._client = client
        self._inbox = Inbox(Phase.IDLE)
        self._request: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        connect_timeout_s: float = 10.0,
        max_message_bytes: int = 100 * 2**20,
        headers: Mapping[str, str] | None = None,
    ) -> HttpSession:
        """Check that a healthy server answers at the base URL. A reply of more than `max_message_bytes` is a BadReply.

        Raises ServerUnreachable, NotAnEnvironment, or ValueError for what is no server URL.
        """
        await health(url, connect_timeout_s, headers=headers)
        client = HttpClient(
            url, connect_timeout_s=connect_timeout_s, max_body_bytes=max_message_bytes, headers=headers
        )
        return cls(client)

    def __repr__(self) -> str:
        return f"<HttpSession {self._client.url} {self._inbox.phase.value}>"

    @property
    def owes(self) -> Kind | None:
        """See EnvironmentSession."""
        return self._inbox.owes

    @property
    def is_open(self) -> bool:
        """See EnvironmentSession. That the server is gone is only noticed by the next request."""
        return self._inbox.phase not in OVER

    async def exchange(self, kind: Kind, data: Mapping[str, Any] | None, timeout_s: float) -> bytes:
        """See EnvironmentSession. Never raises SessionRefused."""
        body = _body(kind, data)
        self._inbox.send(kind)
        self._request = asyncio.create_task(self._ask(kind, body), name=f"{kind} at {self._client.url}")
        return await self._inbox.reply(timeout_s)

    async def collect(self, timeout_s: float) -> bytes:
        """See EnvironmentSession."""
        return await self._inbox.reply(timeout_s)

    async def close(self) -> None:
        """See EnvironmentSession. A request in flight is given up; the server finishes it all the same."""
        self._inbox.close()
        if self._request is not None:
            self._request.cancel()
            await asyncio.wait({self._request}, timeout=_CLOSE_TIMEOUT_S)
        await self._client.aclose()

    async def wait_closed(self) -> None:
        """See EnvironmentSession. That the server is gone is only noticed by the next request."""
        await self._inbox.wait_over()

    async def _ask(self, kind: Kind, body: JsonObject | None) -> None:
        method: Literal["GET", "POST"] = "GET" if kind == "state" else "POST"
        try:
            self._inbox.receive(_frame(kind, await self._client.fetch(method, f"/{kind}", body)))
        except ServerUnreachable as error:
            self._lose(f"{kind} got no answer and its outcome is unknown: {error.reason}")
        except BadReply as error:
            self._inbox.lose(partial(BadReply, error.field, error.found))
        except NotAnEnvironment as error:
            self._inbox.lose(partial(BadReply, f"the answer to {kind}", error.reason))
        except BaseException:
            # An event loop that stops cancels this task: whoever waits must not wait for ever.
            self._lose("its request was stopped")
            raise

    def _lose(self, reason: str) -> None:
        self._inbox.lose(partial(EpisodeLost, reason))


def _body(kind: Kind, data: Mapping[str, Any] | None) -> JsonObject | None:
    """The request's JSON body. Raises TypeError or ValueError for what is not JSON, before anything is sent."""
    if kind == "state":
        return None
    body: JsonObject = {"action": dict(data or {})} if kind == "step" else dict(data or {})
    json.dumps(body, allow_nan=False)
    return body


def _frame(kind: Kind, page: Page) -> bytes:
    """The answer as the frame that a `/ws` server would have sent. Raises BadReply for what is none."""
    if page.status == HTTPStatus.OK:
        return _encode("state" if kind == "state" else "observation", _object(kind, page))
    answered = f"the server answered {kind} with HTTP {page.status}: {page.excerpt}"
    if page.status == HTTPStatus.UNPROCESSABLE_ENTITY:
        return _error_frame(answered, "VALIDATION_ERROR", page.status, _field_errors(page))
    if page.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return _error_frame(answered, "EXECUTION_ERROR", page.status)
    raise BadReply(f"the HTTP status of /{kind}", f"{page.status} ({page.excerpt})")


def _object(kind: Kind, page: Page) -> JsonObject:
    try:
        return page.json_object()
    except ValueError as error:
        raise BadReply(f"the body of /{kind}", str(error)) from error


def _field_errors(page: Page) -> list[Any]:
    try:
        detail = page.json_object().get("detail")
    except ValueError:  # the excerpt in the message shows it
        return []
    return detail if isinstance(detail, list) else []


def _error_frame(message: str, code: str, status: int, errors: list[Any] | None = None) -> bytes:
    data: JsonObject = {"message": message, "code": code, "status": status}
    if errors:
        data["errors"] = errors
    return _encode("error", data)


def _encode(reply_type: str, data: JsonObject) -> bytes:
    return json.dumps({"type": reply_type, "data": data}).encode()
