"""Any command that serves an environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import ProviderError
from .launched import LaunchedServer
from .memory import limited
from .process import STOP_GRACE_S
from .run import Plan, Run


class CommandProvider(LaunchedServer):
    """Runs `command`, with `{port}` replaced in it and the same number in the variable PORT.

    The command must stay in the foreground: when it ends, whatever it started is ended too.
    """

    def __init__(
        self,
        command: str | Sequence[str],
        *,
        cwd: str | Path | None = None,
        host: str = "127.0.0.1",
        env_vars: Mapping[str, str] | None = None,
        context_timeout_s: float = 60.0,
        stop_grace_s: float = STOP_GRACE_S,
        memory: str | None = None,
    ) -> None:
        """A string is a shell command line (`sh -c`); a sequence is executed as it is, without a shell.

        `cwd`: the folder to run it in. The rest as for `LaunchedServer`. Raises `ValueError` for an empty command.
        """
        super().__init__(
            host=host, env_vars=env_vars, context_timeout_s=context_timeout_s, stop_grace_s=stop_grace_s, memory=memory
        )
        if not command or (isinstance(command, str) and not command.strip()):
            raise ValueError("CommandProvider needs a command, for example 'uvicorn server.app:app --port {port}'")
        self.command = command if isinstance(command, str) else tuple(command)
        self.cwd = None if cwd is None else Path(cwd).absolute()

    def _plan(self, run: Run, env: Mapping[str, str], options: Mapping[str, Any]) -> Plan:
        if self.cwd is not None and not self.cwd.is_dir():
            raise ProviderError(f"Cannot run {run.what!r} in {self.cwd}: there is no such folder")
        return Plan(limited(command_line(self.command, run.port), self.memory), env, self.cwd)

    def _hint(self, run: Run) -> str:
        if any("{port}" in word for word in command_words(self.command)):
            return ""
        return f". The command has no {{port}} in it: unless it reads the variable PORT, it does not know of port {run.port}"

    def _names(self) -> tuple[str, str]:
        return (self.command if isinstance(self.command, str) else " ".join(self.command)), "its process"


def command_line(command: str | Sequence[str], port: int) -> list[str]:
    """What is executed. Only `{port}` is replaced: other braces belong to the command."""
    return [word.replace("{port}", str(port)) for word in command_words(command)]


def command_words(command: str | Sequence[str]) -> Sequence[str]:
    """The words of a command as they were given: a string is for a shell."""
    return ["/bin/sh", "-c", command] if isinstance(command, str) else command
