"""OpenEnv's HTTP routes: what an environment says about itself, and the requests of its old HTTP clients.

`GET health, schema, metadata` are answered as the environment's server answers them. `POST reset` opens an environment session
and names it in the cookie `openenv_session` and in the header `X-OpenEnv-Session`; `POST step` and `GET state` carry either
(the header wins). So a client that keeps cookies, as OpenEnv's own old one does, works unchanged; and unlike on a server, a
step acts on the environment that was reset.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from openenv_client.errors import EpisodeLost, OpenEnvError, ReplyTimeout
from openenv_client.frames import ErrorFrame, JsonObject, Kind, Observation, State
from openenv_gateway.errors import GatewayError, UnknownHandle
from openenv_gateway.mapping.failures import failure_of, failure_text
from openenv_gateway.mapping.replies import parse_frame
from openenv_gateway.sessions.environment import Environment
from openenv_gateway.sessions.lane import Lane
from openenv_gateway.transports.access import principal_in
from openenv_gateway.transports.guards import Refused, check_content_type, read_body

COOKIE, HEADER = "openenv_session", "x-openenv-session"
NO_SESSION = f"POST reset first, and send back the cookie {COOKIE} or the header {HEADER} that it answers with."
OWNER = "an OpenEnv HTTP client"

Page = Callable[[Request], Awaitable[Response]]


def http_routes(environment: Environment, prefix: str, max_body_bytes: int) -> list[BaseRoute]:
    """The routes of one environment below `prefix` ("" for the root)."""
    about, play = _About(environment), _Play(environment, prefix, max_body_bytes)
    return [
        Route(f"{prefix}/health", _told(about.health)),
        Route(f"{prefix}/schema", _told(about.schema)),
        Route(f"{prefix}/metadata", _told(about.metadata)),
        Route(f"{prefix}/reset", _told(play.reset), methods=["POST"]),
        Route(f"{prefix}/step", _told(play.step), methods=["POST"]),
        Route(f"{prefix}/state", _told(play.state)),
    ]


class _About:
    """What the environment's server says, as it was when the gateway last read it."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    async def health(self, request: Request) -> Response:
        if await self._environment.is_healthy():
            return _json({"status": "healthy"})
        detail = "Its server does not answer" if self._environment.ready else "No server of this environment has answered yet"
        return _json({"status": "unhealthy", "detail": detail}, 503)

    async def schema(self, request: Request) -> Response:
        await self._environment.tools()
        assert self._environment.description is not None, "tools are made of the description"
        return _json(self._environment.description.schema_page)

    async def metadata(self, request: Request) -> Response:
        await self._environment.tools()
        assert self._environment.description is not None, "tools are made of the description"
        # Clients count on a name and a description, which a server without a usable page does not give.
        return _json({"name": self._environment.name, "description": "", **self._environment.description.metadata_page})


class _Play:
    """reset, step and state on the environment session that the request names."""

    def __init__(self, environment: Environment, prefix: str, max_body_bytes: int) -> None:
        self._environment, self._path, self._max_body_bytes = environment, prefix or "/", max_body_bytes

    async def reset(self, request: Request) -> Response:
        data = await self._body(request)
        lane = self._lane(request)
        made = lane is None
        if lane is None:
            lane = self._environment.lanes.new(principal_in(request.scope).name)
            lane.owners.add(OWNER)
        try:
            response = await self._relayed(lane, "reset", data, self._environment.settings.timeouts.reset_s)
        except BaseException:
            if made:
                self._environment.lanes.discard(lane)  # nobody has its name
            raise
        response.headers[HEADER] = lane.handle
        response.set_cookie(COOKIE, lane.handle, path=self._path, httponly=True, samesite="strict")
        return response

    async def step(self, request: Request) -> Response:
        body = await self._body(request)
        action, timeout_s = body.get("action"), body.get("timeout_s")
        if not isinstance(action, dict):
            raise _Unfit([{"type": "missing", "loc": ["body", "action"], "msg": "An object is required", "input": body}])
        if timeout_s is None:
            timeout_s = self._environment.settings.timeouts.step_s
        elif not isinstance(timeout_s, int | float) or not timeout_s > 0:
            message = "A number of seconds above 0 is required"
            raise _Unfit([{"type": "greater_than", "loc": ["body", "timeout_s"], "msg": message, "input": timeout_s}])
        return await self._relayed(self._known_lane(request), "step", action, float(timeout_s))

    async def state(self, request: Request) -> Response:
        return await self._relayed(self._known_lane(request), "state", {}, self._environment.settings.timeouts.step_s)

    def _lane(self, request: Request) -> Lane | None:
        handle = request.headers.get(HEADER) or request.cookies.get(COOKIE)
        try:
            return None if handle is None else self._environment.lanes.by_handle(handle, principal_in(request.scope).name)
        except UnknownHandle:
            return None

    def _known_lane(self, request: Request) -> Lane:
        lane = self._lane(request)
        if lane is None:
            named = HEADER in request.headers or COOKIE in request.cookies
            raise Refused(404 if named else 400, f"{'The session is unknown or over' if named else 'No session'}: {NO_SESSION}")
        return lane

    async def _body(self, request: Request) -> JsonObject:
        raw = await read_body(request.receive, request.headers.get("content-length"), self._max_body_bytes)
        if not raw:
            return {}
        check_content_type(request.headers.get("content-type"))
        try:
            value = orjson.loads(raw)
        except orjson.JSONDecodeError as error:
            raise _Unfit([{"type": "json_invalid", "loc": ["body"], "msg": f"JSON decode error: {error}"}]) from error
        if not isinstance(value, dict):
            raise _Unfit([{"type": "dict_type", "loc": ["body"], "msg": "Input should be a valid dictionary", "input": value}])
        return value

    @staticmethod
    async def _relayed(lane: Lane, kind: Kind, data: JsonObject, timeout_s: float) -> Response:
        match parse_frame(await lane.relay(kind, data, timeout_s)):
            case Observation() as reply:
                metadata = {"metadata": reply.metadata} if reply.metadata else {}
                body = {"observation": reply.observation, "reward": reply.reward, "done": reply.done, **metadata}
                return _json(body)
            case State(state=state):
                return _json(state)
            case ErrorFrame(code="VALIDATION_ERROR", data=data, message=message):
                return _json({"detail": data.get("errors") or message}, 422)
            case ErrorFrame(message=message, code=code):
                return _json({"detail": f"{code}: {message}"}, 500)


class _Unfit(Exception):
    """A body that cannot be a request; the field errors as OpenEnv servers have them."""

    def __init__(self, errors: list[JsonObject]) -> None:
        super().__init__(str(errors))
        self.errors = errors


def _told(page: Page) -> Page:
    """The page, with failures in the form of OpenEnv servers: {"detail": …}."""

    async def answer(request: Request) -> Response:
        try:
            return await page(request)
        except _Unfit as unfit:
            return _json({"detail": unfit.errors}, 422)
        except Refused as refused:
            return _json({"detail": refused.message}, refused.status, dict(refused.headers))
        except (OpenEnvError, GatewayError) as error:
            return _failed(error)

    return answer


def _failed(error: Exception) -> Response:
    failure = failure_of(error)
    status = 504 if isinstance(error, ReplyTimeout) else 410 if isinstance(error, EpisodeLost) else 503
    seconds = failure.details.get("retry_after_s")
    headers = {} if seconds is None else {"retry-after": str(int(seconds))}
    return _json({"detail": failure_text(failure)}, status, headers)


def _json(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(orjson.dumps(value), status, headers, media_type="application/json")
