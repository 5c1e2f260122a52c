"""A client for any environment: actions, observations and states are plain dictionaries."""

from __future__ import annotations

from typing import Any

from openenv_client.env_client import EnvClient
from openenv_client.results import StepResult

Json = dict[str, Any]


class GenericAction(dict[str, Any]):
    """A dictionary made of keyword arguments, with a repr that says what it is for."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(kwargs)

    def __repr__(self) -> str:
        return f"GenericAction({', '.join(f'{name}={value!r}' for name, value in self.items())})"


class GenericEnvClient(EnvClient[Json, Json, Json]):
    """Needs nothing of the environment's own package.

    Actions may also be objects with `model_dump()` (pydantic), with attributes, or whatever `dict` takes.
    """

    def _step_payload(self, action: Any) -> Json:
        return plain(action)

    def _parse_result(self, payload: Json) -> StepResult[Json]:
        return StepResult(
            observation=payload.get("observation", {}),
            reward=payload.get("reward"),
            done=payload.get("done", False),
            metadata=payload.get("metadata"),
        )

    def _parse_state(self, payload: Json) -> Json:
        return payload


def plain(action: Any) -> Json:
    """An action as a dictionary. Raises TypeError or ValueError for what cannot be one."""
    if isinstance(action, dict):
        return action
    if hasattr(action, "model_dump"):
        dumped: Json = action.model_dump()
        return dumped
    if hasattr(action, "__dict__"):
        return dict(vars(action))
    return dict(action)
