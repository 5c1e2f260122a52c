"""Environments from their source folder or git repository, each launch in an isolated virtual environment made by uv."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import LaunchFailed, ProviderError
from .git_source import GIT_URL_PREFIX, clone_commands, parse_git_source
from .launched import LaunchedServer
from .memory import limited
from .process import STOP_GRACE_S
from .run import Plan, Run

DEFAULT_APP = "server.app:app"
CLONE_PREFIX = "openenv-uv-clone-"
"""How the folders of clones begin, in the folder for temporary files."""
_NO_PROJECT = "there is no pyproject.toml in the folder (nor above it), so uv has no project to run"
_NO_UV = "`uv` executable not found. Install uv from https://docs.astral.sh and ensure it is on PATH."


class UVProvider(LaunchedServer):
    """`uv run --isolated --project FOLDER -- uvicorn APP`, with the arguments and error texts of OpenEnv's own UVProvider.

    Different on purpose: it listens on 127.0.0.1 unless told; APP comes from the folder's openenv.yaml if not given; it runs
    in the folder from which APP can be imported; git sources may name a revision and a subdirectory.
    """

    def __init__(
        self,
        *,
        project_path: str,
        app: str | None = None,
        host: str = "127.0.0.1",
        reload: bool = False,
        env_vars: Mapping[str, str] | None = None,
        context_timeout_s: float = 60.0,
        cwd: str | Path | None = None,
        stop_grace_s: float = STOP_GRACE_S,
        memory: str | None = None,
    ) -> None:
        """`project_path`: a folder with a pyproject.toml, or `git+URL[@REF][#subdirectory=FOLDER]`, cloned at every start.

        `context_timeout_s` bounds the clone and, unless told otherwise, the wait for readiness; a first start downloads the
        environment's dependencies. Raises `RuntimeError` if uv is missing, `ValueError` for a malformed git source.
        """
        super().__init__(
            host=host, env_vars=env_vars, context_timeout_s=context_timeout_s, stop_grace_s=stop_grace_s, memory=memory
        )
        self._git = parse_git_source(project_path) if project_path.startswith(GIT_URL_PREFIX) else None
        self.project_path = project_path if self._git else os.path.abspath(project_path)
        self.app, self.reload = app, reload
        self.cwd = None if cwd is None else Path(cwd).absolute()
        self._uv = find_uv()

    def _plan(self, run: Run, env: Mapping[str, str], options: Mapping[str, Any]) -> Plan:
        folder = self._clone(run, env) if self._git else Path(self.project_path)
        if not folder.is_dir():
            raise ProviderError(f"Cannot launch {run.what}: there is no folder {folder}")
        if not has_project(folder):
            raise ProviderError(f"Cannot launch {run.what}: {_NO_PROJECT}")
        app = self.app or declared_app(folder) or DEFAULT_APP
        command = [self._uv, "run", "--isolated", "--project", str(folder), "--", "uvicorn", app]
        command += ["--host", self.host, "--port", str(run.port), "--workers", str(options.get("workers", 1))]
        command = limited(command + ["--reload"] * self.reload, self.memory)
        return Plan(command, env, self.cwd or import_folder(folder, app))

    def _names(self) -> tuple[str, str]:
        return f"uv:{self.project_path}", "uv process"

    def _clone(self, run: Run, env: Mapping[str, str]) -> Path:
        """The folder of a fresh clone, removed when the run ends (but not after kill -9: it lies in the temporary folder)."""
        assert self._git is not None
        if shutil.which("git") is None:
            raise ProviderError(f"`git` executable not found; required to clone project_path {self.project_path!r}.")
        clone = tempfile.mkdtemp(prefix=CLONE_PREFIX)
        run.on_end(lambda: shutil.rmtree(clone))
        for command in clone_commands(self._git, clone):
            status, output = run.run_to_end(Plan(command, {**env, "GIT_TERMINAL_PROMPT": "0"}), self.context_timeout_s)
            if status is None:
                reason = f"Timed out cloning {self._git.url!r} after {self.context_timeout_s:.1f}s"
                raise LaunchFailed(run.what, reason, output)
            if status:
                raise LaunchFailed(run.what, f"Failed to clone {self._git.url!r}: git exited with code {status}", output)
        return Path(clone, self._git.subdirectory)


def find_uv() -> str:
    """The uv on PATH, else the one installed beside this Python. Raises `ProviderError` if neither runs."""
    for candidate in (shutil.which("uv"), str(Path(sys.executable).with_name("uv"))):
        if candidate and _runs(candidate):
            return candidate
    raise ProviderError(_NO_UV)


def declared_app(folder: Path) -> str | None:
    """The value of the top-level key `app` in `folder`/openenv.yaml; None if there is no such file or key.

    A look-up of one line, not a YAML parser: the key at the start of a line, a plain or quoted scalar, perhaps a comment.
    """
    try:
        text = (folder / "openenv.yaml").read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    found = re.search(r"""^app[ \t]*:[ \t]+(["']?)([\w.]+:[\w.]+)\1[ \t]*(?:\#.*)?$""", text, re.MULTILINE)
    return found[2] if found else None


def has_project(folder: Path) -> bool:
    """Whether uv finds a project for this folder: it looks for a pyproject.toml in it and in every folder above."""
    return any((place / "pyproject.toml").is_file() for place in (folder.absolute(), *folder.absolute().parents))


def import_folder(folder: Path, app: str) -> Path:
    """Where uvicorn finds `app`: `server.app:app` in the environment's folder, `<env>.server.app:app` in its parent."""
    package = re.split(r"[.:]", app, maxsplit=1)[0]
    inside = (folder / package).is_dir() or (folder / f"{package}.py").is_file()
    return folder.parent if package == folder.name and not inside else folder


def _runs(uv: str) -> bool:
    """A name on PATH may be the shim of a version manager that has no uv."""
    try:
        return subprocess.run([uv, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=30).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
