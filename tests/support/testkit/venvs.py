"""Virtual environments of the suite's own, for peers that cannot share ours: other OpenEnv versions, other SDKs.

They lie in the folder of `testkit.cache`.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from testkit import cache
from testkit.cache import NetworkAbsent as NetworkAbsent

OPENENV_0_10: Final = "openenv-0.10.0"
OPENENV_CORE_0_3: Final = "openenv-core-0.3.0"
OPENENV_CORE_0_2: Final = "openenv-core-0.2.3"
OPENENV_CORE_0_2_0: Final = "openenv-core-0.2.0"
OPENENV_CORE_0_1: Final = "openenv-core-0.1.1"
MCP_1: Final = "mcp-1.30.0"
HOST_CONVERTERS: Final = "host-converters"
FASTMCP: Final = "fastmcp-4.2.3"
LANGCHAIN: Final = "langchain-mcp-adapters-0.3.2"
OPENAI_AGENTS: Final = "openai-agents-0.24.0"
PYDANTIC_AI: Final = "pydantic-ai-2.68.0"

RECIPES: Final[Mapping[str, tuple[str, ...]]] = {
    OPENENV_0_10: ("openenv==0.10.0",),
    OPENENV_CORE_0_3: ("openenv-core==0.3.0",),
    OPENENV_CORE_0_2: ("openenv-core==0.2.3",),
    OPENENV_CORE_0_2_0: ("openenv-core==0.2.0",),
    OPENENV_CORE_0_1: ("openenv-core==0.1.1",),
    MCP_1: ("mcp==1.30.0",),
    FASTMCP: ("fastmcp==4.2.3",),
    LANGCHAIN: ("langchain-mcp-adapters==0.3.2",),
    OPENAI_AGENTS: ("openai-agents==0.24.0",),
    PYDANTIC_AI: ("pydantic-ai-slim[mcp]==2.68.0",),
    HOST_CONVERTERS: ("openai-agents==0.24.0", "google-genai==3.6.1"),
}
"""The environments that the suite knows, by name: what is installed in each."""

_NO_NETWORK = ("client error (Connect)", "dns error", "tcp connect error", "Network connectivity is disabled")

_STUB_WRITER = "lib/*/site-packages/gradio/component_meta.py"
"""See _write_no_stubs; part of what makes another folder."""

VenvFailed = cache.BuildFailed
cache_folder = cache.folder


def known(name: str) -> Path:
    """The python executable of the environment of that name in RECIPES (KeyError for another one); see `venv`."""
    return venv(name, *RECIPES[name])


def venv(name: str, *requirements: str, python: str | None = None) -> Path:
    """The python executable of an environment that holds the requirements, built now if no earlier run has built it.

    `python` is a version or path that uv understands; None means the interpreter that runs the suite. Safe from several
    processes at once: they wait for the one that builds. Takes at most cache.BUILD_TIMEOUT_S seconds to wait and as many to
    build. Raises VenvFailed, or NetworkAbsent.
    """
    # The base interpreter, not the one of the environment that the suite runs in: every checkout finds the same folder.
    interpreter = python or str(Path(sys.executable).resolve())

    def build(folder: Path) -> None:
        installer = cache.Installer(_NO_NETWORK, {"UV_PYTHON_DOWNLOADS": "never"})
        installer.run(uv(), "--no-progress", "venv", "--quiet", "--python", interpreter, str(folder))
        if requirements:
            target = str(folder / "bin" / "python")
            installer.run(uv(), "--no-progress", "pip", "install", "--quiet", "--python", target, *requirements)
        for module in folder.glob(_STUB_WRITER):
            _write_no_stubs(module)

    return cache.kept(name, [interpreter, sys.version, *requirements, _STUB_WRITER], build) / "bin" / "python"


def _write_no_stubs(module: Path) -> None:
    """Keep gradio from parsing its own sources, to write stubs for editors, at every import.

    openenv imports it for its web page, and that parsing is 40 % of what a server's start costs. The file is replaced and not
    written to, since uv shares it with its cache by a hard link.
    """
    source = module.read_text("utf-8")
    if "def create_or_modify_pyi(" not in source:
        raise VenvFailed(f"{module} writes no stubs any more: take _write_no_stubs out of testkit.venvs")
    module.unlink()
    module.write_text(f"{source}\n\ndef create_or_modify_pyi(component_class, class_name, events): ...\n", "utf-8")


def uv() -> str:
    """The uv executable: the one installed beside the running python, else the one on PATH. Raises VenvFailed."""
    beside = Path(sys.executable).with_name("uv")
    found = str(beside) if beside.exists() else shutil.which("uv")
    if found is None:
        raise VenvFailed("uv is neither beside the running python nor on PATH; install the extra 'test'")
    return found
