"""What every environment here needs of the framework, and the one place where its versions differ."""

from __future__ import annotations

import os
from collections.abc import Callable

from fastapi import FastAPI
from openenv.core.env_server import Action, ConcurrencyConfig, Environment, Observation, create_app


def serve(
    environment: Callable[[], Environment],
    action: type[Action],
    observation: type[Observation],
    sessions: int | None = None,
) -> FastAPI:
    """The server of one environment, with as many sessions as `sessions`, or else MAX_SESSIONS, says."""
    timeout = os.environ.get("SESSION_TIMEOUT_S")
    concurrency = ConcurrencyConfig(
        max_concurrent_envs=sessions or int(os.environ.get("MAX_SESSIONS", "1")),
        session_timeout=None if timeout is None else float(timeout),
    )
    return create_app(environment, action, observation, concurrency_config=concurrency)
