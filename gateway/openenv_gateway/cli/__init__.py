"""The command line: `openenv-gateway COMMAND`. Each command is a module of its own, imported when it is called."""

from openenv_gateway.cli.main import main

__all__ = ["main"]
