"""Sources of the form `git+URL[@REF][#subdirectory=FOLDER]`, as pip and uv write them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import parse_qs

GIT_URL_PREFIX = "git+"


@dataclass(frozen=True)
class GitSource:
    """`ref` is a branch, a tag or a full commit id; None is the default branch. `subdirectory` is relative, "" for the root."""

    url: str
    ref: str | None = None
    subdirectory: str = ""


def parse_git_source(spec: str) -> GitSource:
    """Raises `ValueError` for a spec that is no git source, or whose parts git or the file system would take for others."""
    if not spec.startswith(GIT_URL_PREFIX):
        raise ValueError(f"{spec!r} is no git source: it must start with {GIT_URL_PREFIX!r}")
    address, _, fragment = spec[len(GIT_URL_PREFIX) :].partition("#")
    head, slash, last = address.rpartition("/")
    last, _, ref = last.partition("@")  # an @ before the last slash belongs to the user name
    url = head + slash + last
    subdirectory = parse_qs(fragment).get("subdirectory", [""])[-1]
    path = PurePosixPath(subdirectory)
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(f"{spec!r}: the subdirectory must lie inside the repository")
    if not last or url.startswith("-") or ref.startswith("-"):
        raise ValueError(f"{spec!r} names no git repository")
    return GitSource(url, ref or None, subdirectory)


def clone_commands(source: GitSource, folder: str) -> list[list[str]]:
    """Commands that fetch just the one revision into the empty `folder`. A commit id cannot be cloned, but fetched."""
    if source.ref is None:
        return [["git", "clone", "--quiet", "--depth", "1", "--", source.url, folder]]
    inside = ["git", "-C", folder]
    return [
        [*inside, "init", "--quiet"],
        [*inside, "fetch", "--quiet", "--depth", "1", "--", source.url, source.ref],
        [*inside, "checkout", "--quiet", "FETCH_HEAD"],
    ]
