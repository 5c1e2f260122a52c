"""git_source.py: what a git spec names, and the commands that fetch it."""

from __future__ import annotations

import pytest

from openenv_client.providers.git_source import GitSource, clone_commands, parse_git_source


@pytest.mark.parametrize(
    ("spec", "source"),
    [
        ("git+https://host.example/org/env", GitSource("https://host.example/org/env")),
        ("git+https://host.example/org/env.git@v1.2", GitSource("https://host.example/org/env.git", "v1.2")),
        ("git+ssh://git@host.example/org/env", GitSource("ssh://git@host.example/org/env")),
        ("git+ssh://git@host.example/org/env@main", GitSource("ssh://git@host.example/org/env", "main")),
        ("git+https://host.example/org/all#subdirectory=envs/one", GitSource("https://host.example/org/all", None, "envs/one")),
        ("git+file:///srv/all@0123abc#subdirectory=one&egg=x", GitSource("file:///srv/all", "0123abc", "one")),
    ],
)
def test_a_spec_names_a_repository_and_perhaps_a_revision_and_a_folder(spec: str, source: GitSource) -> None:
    assert parse_git_source(spec) == source


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("https://host.example/org/env", "must start with 'git\\+'"),
        ("git+https://host.example/env#subdirectory=../..", "must lie inside the repository"),
        ("git+https://host.example/env#subdirectory=/etc", "must lie inside the repository"),
        ("git+--upload-pack=x/y", "names no git repository"),
        ("git+https://host.example/env@--exec", "names no git repository"),
        ("git+https://host.example/", "names no git repository"),
    ],
)
def test_a_spec_that_git_or_the_file_system_would_take_for_something_else_is_refused(spec: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_git_source(spec)


def test_without_a_revision_the_default_branch_is_cloned() -> None:
    assert clone_commands(GitSource("https://h/x"), "/t") == [
        ["git", "clone", "--quiet", "--depth", "1", "--", "https://h/x", "/t"]
    ]


def test_a_revision_is_fetched_because_a_commit_cannot_be_cloned() -> None:
    assert clone_commands(GitSource("https://h/x", "abc"), "/t") == [
        ["git", "-C", "/t", "init", "--quiet"],
        ["git", "-C", "/t", "fetch", "--quiet", "--depth", "1", "--", "https://h/x", "abc"],
        ["git", "-C", "/t", "checkout", "--quiet", "FETCH_HEAD"],
    ]
