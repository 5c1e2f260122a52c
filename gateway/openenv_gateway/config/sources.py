"""Where an environment's servers come from, read from text: `demo`, `http://host:port`, `cmd:…`, `uv:…`, `docker:…` and so on.

Looks at the file system in one place: a `uv:` path, and a bare path, must be folders. Nothing is started or fetched.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from urllib.parse import SplitResult, urlsplit

from openenv_gateway.config.words import did_you_mean
from openenv_gateway.settings import Source, SourceKind

FORMS: Mapping[SourceKind, str] = MappingProxyType({
    "demo": "demo",
    "http": "http://HOST:PORT",
    "cmd": "cmd:COMMAND with {port}",
    "uv": "uv:PATH or uv:git+URL",
    "docker": "docker:IMAGE",
    "hf": "hf:ORG/SPACE",
    "swarm": "swarm:IMAGE",
    "k8s": "k8s:IMAGE",
    "py": "py:MODULE:CLASS",
})
"""How each kind is written."""

ALL_FORMS = ", ".join(FORMS.values()) + ", or a folder that has an openenv.yaml"
MANIFEST = "openenv.yaml"
IMAGE = re.compile(r"[A-Za-z0-9][\w.-]*(:\d+)?(/[\w.-]+)*(:[\w.-]+)?(@[A-Za-z0-9]+:[0-9a-fA-F]+)?")
SPACE = re.compile(r"[\w.-]+/[\w.-]+")
CLASS = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


class BadSource(ValueError):
    """A source that cannot be read. `str()` says why and how it is written."""


def parse_source(text: str, folder: Path) -> Source:
    """The source that the text names; relative paths are seen from `folder`. Raises BadSource."""
    text = text.strip()
    if text == "demo":
        return Source("demo")
    prefix, colon, target = text.partition(":")
    if colon and prefix.lower() in ("http", "https"):
        return Source("http", _url(text))
    if colon and prefix in READERS:
        return _read(prefix, target.strip(), folder)
    return _folder_source(text, folder)


def seen_from(folder: Path, path: str) -> Path:
    """A path as the user wrote it, `~` and all, seen from a folder."""
    try:
        return folder / os.path.expanduser(path)  # unlike Path.expanduser, it leaves ~nobody as it is
    except ValueError:
        return folder / path  # a zero byte in it: there is no such folder either way


def default_name(source: Source) -> str:
    """A name for an environment that was given none: letters, digits, hyphens and underscores, from the source."""
    words = re.sub(r"[^a-z0-9_]+", "-", NAMES[source.kind](source).lower()).strip("-_")
    return words or "environment"


def hidden_credentials(text: str) -> str:
    """The text with the user part of any URL in it masked: for messages."""
    return re.sub(r"//[^/@\s]*@", "//…@", text)


def _read(prefix: str, target: str, folder: Path) -> Source:
    kind, reader = READERS[prefix]
    if not target:
        raise BadSource(f"nothing follows {prefix}: (it is written {FORMS[kind]})")
    return Source(kind, reader(target, folder))


def _url(text: str) -> str:
    url = _split(text)
    if url.username is not None or url.password is not None:
        raise BadSource("a URL with credentials would be shown in logs and banners; leave them out")
    if url.query or url.fragment or text.endswith(("?", "#")):
        raise BadSource("a server's URL has no query and no fragment; paths such as /ws are put behind it")
    return f"{url.scheme}://{url.netloc}{url.path.rstrip('/')}"


def _split(text: str) -> SplitResult:
    shown = hidden_credentials(text)
    try:
        url = urlsplit(text)
        named = bool(url.hostname) and url.port != 0
    except ValueError as error:
        raise BadSource(f"{shown} is not a URL: {error}") from error
    if not named or re.search(r"\s", text):
        raise BadSource(f"{shown} is not the URL of a server (it is written {FORMS['http']})")
    return url


def _command(target: str, _folder: Path) -> str:
    try:
        shlex.split(target)
    except ValueError as error:
        raise BadSource(f"the command cannot be split into words: {error}") from error
    return target


def _project(target: str, folder: Path) -> str:
    if target.startswith("git+"):
        if "://" not in target:
            raise BadSource("a git source is written uv:git+https://HOST/REPOSITORY")
        return target
    path = seen_from(folder, target)
    if not os.path.isdir(path):
        raise BadSource(f"there is no folder {path}")
    return str(path)


def _matching(pattern: re.Pattern[str], what: str) -> Callable[[str, Path], str]:
    def reader(target: str, _folder: Path) -> str:
        if not pattern.fullmatch(target):
            raise BadSource(f'"{target}" is not {what}')
        return target

    return reader


def _folder_source(text: str, folder: Path) -> Source:
    path = seen_from(folder, text)
    if text and os.path.isdir(path):  # unlike Path.is_dir, it takes any text: too long, with NUL, not allowed
        if (path / MANIFEST).is_file():
            return Source("uv", str(path))
        raise BadSource(f"the folder {path} has no {MANIFEST}; write uv:{text} if it is an environment all the same")
    raise BadSource(f'unknown source "{hidden_credentials(text)}"{_hint(text)}; known forms: {ALL_FORMS}')


def _hint(text: str) -> str:
    if re.match(r"wss?://", text):
        return "; give the server's http:// URL, /ws is put behind it"
    if re.fullmatch(r"[\w.-]+:\d+(/.*)?", text):
        return f'; did you mean "http://{text}"?'
    prefix, colon, _ = text.partition(":")
    return did_you_mean(prefix, FORMS) if colon or prefix else ""


READERS: Mapping[str, tuple[SourceKind, Callable[[str, Path], str]]] = MappingProxyType({
    "cmd": ("cmd", _command),
    "uv": ("uv", _project),
    "docker": ("docker", _matching(IMAGE, "the name of an image")),
    "hf": ("hf", _matching(SPACE, "a Space (ORG/SPACE)")),
    "swarm": ("swarm", _matching(IMAGE, "the name of an image")),
    "k8s": ("k8s", _matching(IMAGE, "the name of an image")),
    "py": ("py", _matching(CLASS, "a class (MODULE:CLASS)")),
})
"""What follows each prefix, read."""


def _image_name(source: Source) -> str:
    return source.target.split("@")[0].rsplit("/", 1)[-1].split(":")[0]


def _url_name(source: Source) -> str:
    return source.target.split("://", 1)[1]


def _project_name(source: Source) -> str:
    if not source.target.startswith("git+"):
        return Path(source.target).resolve().name
    repository, _, subdirectory = source.target.partition("#subdirectory=")
    last = (subdirectory or repository).rstrip("/").rsplit("/", 1)[-1]
    return last.split("@")[0].removesuffix(".git")


def _command_name(source: Source) -> str:
    return source.cwd.resolve().name if source.cwd else Path(shlex.split(source.target)[0]).stem


NAMES: Mapping[SourceKind, Callable[[Source], str]] = MappingProxyType({
    "demo": lambda _source: "demo",
    "http": _url_name,
    "cmd": _command_name,
    "uv": _project_name,
    "docker": _image_name,
    "hf": _image_name,
    "swarm": _image_name,
    "k8s": _image_name,
    "py": lambda source: source.target.rsplit(":", 1)[-1],
})
"""What an environment is called after its source."""
