"""uv.py: finding uv, the app and the folder to run it in, and git sources. Launching is in test_contract.py."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from testkit import venvs

from openenv_client.errors import LaunchFailed, ProviderError
from openenv_client.providers.uv import UVProvider, declared_app, find_uv, has_project, import_folder


def executable(path: Path, script: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("text", "app"),
    [
        ("spec_version: 1\napp: server.app:app\nport: 8000\n", "server.app:app"),
        ("app:   'my_env.server.app:app'   # where it is\n", "my_env.server.app:app"),
        ('app: "main:api"', "main:api"),
        ("nested:\n  app: other:app\n", None),
        ("application: other:app\n", None),
        ("# app: other:app\n", None),
        ("app:\n", None),
        ("app: 'main:api\n", None),
        ("", None),
    ],
)
def test_the_app_is_the_top_level_key_of_openenv_yaml(tmp_path: Path, text: str, app: str | None) -> None:
    (tmp_path / "openenv.yaml").write_text(text, "utf-8")
    assert declared_app(tmp_path) == app


def test_without_openenv_yaml_no_app_is_declared(tmp_path: Path) -> None:
    assert declared_app(tmp_path) is None


def test_both_launch_forms_run_where_their_app_can_be_imported(tmp_path: Path) -> None:
    folder = tmp_path / "chess_env"
    (folder / "server").mkdir(parents=True)
    assert import_folder(folder, "server.app:app") == folder
    assert import_folder(folder, "chess_env.server.app:app") == tmp_path


def test_a_project_is_found_in_the_folder_or_above_it_as_uv_finds_it(tmp_path: Path) -> None:
    folder = tmp_path / "envs" / "chess_env"
    folder.mkdir(parents=True)
    assert not has_project(folder)
    (tmp_path / "pyproject.toml").touch()
    assert has_project(folder) and has_project(tmp_path)


def test_a_package_named_as_its_project_folder_is_imported_from_inside(tmp_path: Path) -> None:
    folder = tmp_path / "chess_env"
    (folder / "chess_env").mkdir(parents=True)
    assert import_folder(folder, "chess_env.server.app:app") == folder


def test_uv_on_the_path_is_preferred_to_the_one_beside_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_path, beside = executable(tmp_path / "path" / "uv", "exit 0"), executable(tmp_path / "beside" / "uv", "exit 0")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "beside" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"), prepend=":")
    assert find_uv() == on_path
    executable(tmp_path / "path" / "uv", "exit 127  # the shim of a version manager that has no uv")
    assert find_uv() == beside


def test_a_missing_uv_is_told_with_the_words_that_openenv_uses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match="`uv` executable not found. Install uv from https://docs.astral.sh"):
        UVProvider(project_path=".")


@pytest.fixture
def have_uv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(Path(venvs.uv()).parent), prepend=":")


@pytest.mark.usefixtures("have_uv")
class TestSources:
    """What start() says about a source that it cannot use; in each case nothing is left behind."""

    def test_a_folder_that_is_not_there(self, tmp_path: Path) -> None:
        provider = UVProvider(project_path=str(tmp_path / "gone"))
        with pytest.raises(ProviderError, match="there is no folder .*gone"):
            provider.start()

    def test_a_folder_without_a_project(self, tmp_path: Path) -> None:
        (tmp_path / "openenv.yaml").write_text("app: server.app:app\n", "utf-8")
        provider = UVProvider(project_path=str(tmp_path))
        with pytest.raises(ProviderError, match=r"there is no pyproject\.toml in the folder \(nor above it\)"):
            provider.start()

    def test_a_repository_that_is_not_there(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        provider = UVProvider(project_path=f"git+file://{tmp_path}/gone")
        with pytest.raises(LaunchFailed, match="Failed to clone 'file://.*gone': git exited with code 128"):
            provider.start()
        assert list(tmp_path.iterdir()) == []

    def test_a_revision_that_is_not_there(self, tmp_path: Path) -> None:
        source = tmp_path / "source"
        subprocess.run(["git", "init", "--quiet", str(source)], check=True)
        provider = UVProvider(project_path=f"git+file://{source}@v9")
        with pytest.raises(LaunchFailed, match="couldn't find remote ref v9"):
            provider.start()

    def test_a_missing_git(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        provider = UVProvider(project_path="git+https://host.example/env")
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(ProviderError, match="`git` executable not found; required to clone project_path"):
            provider.start()

    def test_a_clone_that_takes_too_long(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        provider = UVProvider(project_path="git+https://host.example/env", context_timeout_s=0.2)
        executable(tmp_path / "git", "exec sleep 600")
        monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
        with pytest.raises(LaunchFailed, match=r"Timed out cloning 'https://host\.example/env' after 0\.2s"):
            provider.start()
