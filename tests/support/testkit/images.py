"""Docker images for tests, built on python:3.X-slim (X: the Python that runs the suite; $PYTHON_IMAGE names another).

An image is built once: its tag holds a digest of all that it is made of. With the classic builder, which every engine has.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from testkit import cache, servers

REPOSITORY: Final = "openenv-gateway-test"
PLAIN_SERVER: Final = Path(__file__).parents[2] / "client" / "providers" / "plain_server.py"
OPENENV: Final = "openenv==0.10.0"
_BUILD_TIMEOUT_S: Final = 540

_WRITE_NO_STUBS: Final = (
    "import gradio, pathlib; (pathlib.Path(gradio.__path__[0]) / 'component_meta.py').open('a').write("
    r"'\ndef create_or_modify_pyi(component_class, class_name, events): ...\n')"
)
"""See testkit.venvs: 40 % of a server's start."""

_FRAMEWORK: Final = f"""
ARG PYTHON_IMAGE
FROM ${{PYTHON_IMAGE}}
RUN pip install --quiet --no-cache-dir --root-user-action=ignore {OPENENV}
RUN python3 -c "{_WRITE_NO_STUBS}"
"""
_ENVIRONMENTS: Final = """
COPY environments /app
WORKDIR /app
ENV ENVIRONMENT=counter PORT=8000
CMD exec python3 -m uvicorn "$ENVIRONMENT:app" --host 0.0.0.0 --port "$PORT"
"""
_PLAIN: Final = """
ARG PYTHON_IMAGE
FROM ${PYTHON_IMAGE}
COPY plain_server.py /
ENTRYPOINT ["python3", "/plain_server.py", "8000", "everywhere"]
"""


class DockerAbsent(RuntimeError):
    """No Docker engine answers."""


def require_docker() -> None:
    """Raises DockerAbsent."""
    if shutil.which("docker") is None:
        raise DockerAbsent("there is no docker command")
    asked = subprocess.run(["docker", "version"], capture_output=True, text=True, timeout=30)
    if asked.returncode != 0:
        raise DockerAbsent(asked.stderr.strip())


def openenv(*lines: str) -> str:
    """An image of a real OpenEnv server with the environments of tests/real/environments on it: the variable ENVIRONMENT says
    which it serves (`counter`). `lines` are put at the end of its Dockerfile."""
    framework = built(_FRAMEWORK, [])
    serving = built(f"FROM {framework}{_ENVIRONMENTS}", [servers.ENVIRONMENTS])
    return built("\n".join([f"FROM {serving}", *lines, ""]), []) if lines else serving


def plain(*words: str) -> str:
    """An image of `plain_server.py`, which is told these words."""
    image = built(_PLAIN, [PLAIN_SERVER])
    return built(f"FROM {image}\nCMD {list(words)}\n".replace("'", '"'), []) if words else image


def built(dockerfile: str, contents: Sequence[Path]) -> str:
    """The tag of an image of this Dockerfile, whose context holds these files and folders; built unless it is there.

    Safe from several processes at once. Raises cache.BuildFailed with the builder's output.
    """
    tag = f"{REPOSITORY}:{_digest(dockerfile, contents)}"
    if exists(tag):
        return tag
    with cache.alone("docker-images"), tempfile.TemporaryDirectory() as context:
        if not exists(tag):
            Path(context, "Dockerfile").write_text(dockerfile, "utf-8")
            for each in contents:
                target = Path(context, each.name)
                shutil.copytree(each, target, ignore=_no_bytecode) if each.is_dir() else shutil.copy(each, target)
            build(tag, context)
    return tag


def containers(label: str) -> list[str]:
    """The names of all containers with this label, also those that do not run."""
    command = ["docker", "ps", "--all", "--filter", f"label={label}", "--format", "{{.Names}}"]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.split()


def base() -> str:
    """The image that all are built on."""
    return os.environ.get("PYTHON_IMAGE") or f"python:{sys.version_info.major}.{sys.version_info.minor}-slim"


_no_bytecode = shutil.ignore_patterns("__pycache__")


def build(tag: str, context: str | Path) -> None:
    """An image of the Dockerfile in a folder. Raises cache.BuildFailed with the builder's output."""
    command = ["docker", "build", "--quiet", "--build-arg", f"PYTHON_IMAGE={base()}", "--tag", tag, str(context)]
    done = subprocess.run(
        command,
        env={**os.environ, "DOCKER_BUILDKIT": "0"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_BUILD_TIMEOUT_S,
    )
    if done.returncode != 0:
        raise cache.BuildFailed(f"docker build of {tag} failed:\n{done.stdout}{done.stderr}")


def exists(tag: str) -> bool:
    """Whether the engine has this image."""
    return subprocess.run(["docker", "image", "inspect", tag], capture_output=True, timeout=60).returncode == 0


def _digest(dockerfile: str, contents: Sequence[Path]) -> str:
    found = hashlib.sha256(f"{base()}\n{dockerfile}".encode())
    for each in contents:
        files = sorted(each.rglob("*.py")) if each.is_dir() else [each]
        for file in files:
            found.update(f"{file.relative_to(each.parent)}\n".encode() + file.read_bytes())
    return found.hexdigest()[:12]
