"""Client side of OpenEnv environment servers.

What user code imports is here, and loaded when it is first asked for: who needs only one part pays for no other.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from openenv_client.env_client import EnvClient as EnvClient
    from openenv_client.generic_client import GenericAction as GenericAction
    from openenv_client.generic_client import GenericEnvClient as GenericEnvClient
    from openenv_client.results import StepResult as StepResult
    from openenv_client.results import Tool as Tool
    from openenv_client.sync_client import SyncEnvClient as SyncEnvClient

_MODULES = {
    "EnvClient": "env_client",
    "GenericAction": "generic_client",
    "GenericEnvClient": "generic_client",
    "StepResult": "results",
    "SyncEnvClient": "sync_client",
    "Tool": "results",
}

__all__ = ["EnvClient", "GenericAction", "GenericEnvClient", "StepResult", "SyncEnvClient", "Tool"]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
