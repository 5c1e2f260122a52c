"""Client side of OpenEnv environment servers.

What user code imports is here, and loaded when it is first asked for: who needs only one part pays for no other.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from openenv_client.bootstrap import Bootstrap as Bootstrap
    from openenv_client.env_client import EnvClient as EnvClient
    from openenv_client.generic_client import GenericAction as GenericAction
    from openenv_client.generic_client import GenericEnvClient as GenericEnvClient
    from openenv_client.http_env_client import HTTPEnvClient as HTTPEnvClient
    from openenv_client.progress import Progress as Progress
    from openenv_client.results import StepResult as StepResult
    from openenv_client.results import Tool as Tool
    from openenv_client.sync_client import SyncEnvClient as SyncEnvClient
    from openenv_client.tool_client import CallToolAction as CallToolAction
    from openenv_client.tool_client import ListToolsAction as ListToolsAction
    from openenv_client.tool_client import MCPToolClient as MCPToolClient
    from openenv_client.tool_client import ToolObservation as ToolObservation
    from openenv_client.tool_client import ToolState as ToolState

_MODULES = {
    "Bootstrap": "bootstrap",
    "CallToolAction": "tool_client",
    "EnvClient": "env_client",
    "GenericAction": "generic_client",
    "GenericEnvClient": "generic_client",
    "HTTPEnvClient": "http_env_client",
    "ListToolsAction": "tool_client",
    "MCPToolClient": "tool_client",
    "Progress": "progress",
    "StepResult": "results",
    "SyncEnvClient": "sync_client",
    "Tool": "results",
    "ToolObservation": "tool_client",
    "ToolState": "tool_client",
}

__all__ = [
    "Bootstrap",
    "CallToolAction",
    "EnvClient",
    "GenericAction",
    "GenericEnvClient",
    "HTTPEnvClient",
    "ListToolsAction",
    "MCPToolClient",
    "Progress",
    "StepResult",
    "SyncEnvClient",
    "Tool",
    "ToolObservation",
    "ToolState",
]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
