"""testkit.node: installed once, by the machine's npm, and never silently."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from testkit import cache, node


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OPENENV_GATEWAY_TEST_CACHE", str(tmp_path / "cache"))
    return tmp_path


def packages(monkeypatch: pytest.MonkeyPatch, dependencies: Mapping[str, str]) -> None:
    monkeypatch.setattr(node, "PACKAGES", {"some": dependencies})


def npm_or_skip() -> None:
    try:
        node.npm()
    except node.NpmAbsent as absent:
        pytest.skip(str(absent))


def test_packages_are_installed_and_no_script_of_theirs_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    npm_or_skip()
    made = tmp_path / "made"
    made.mkdir()
    scripts = {"postinstall": "touch ran"}
    (made / "package.json").write_text(json.dumps({"name": "made", "version": "1.0.0", "scripts": scripts}), "utf-8")
    packages(monkeypatch, {"made": f"file:{made}"})
    folder = node.modules("some")
    assert (folder / "made" / "package.json").exists()
    assert not (folder / "made" / "ran").exists()
    assert node.modules("some") == folder


def test_a_package_that_is_not_there_is_an_error_that_shows_what_npm_said(monkeypatch: pytest.MonkeyPatch) -> None:
    npm_or_skip()
    packages(monkeypatch, {"made": "file:/no/such/made.tgz"})
    with pytest.raises(cache.BuildFailed, match=r"(?s)npm install.*failed with exit code.*no/such/made") as failure:
        node.modules("some")
    assert not isinstance(failure.value, cache.NetworkAbsent | node.NpmAbsent)


def test_a_registry_that_cannot_be_reached_is_told_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    npm_or_skip()
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:9/")
    monkeypatch.setenv("npm_config_cache", str(tmp_path / "npm"))
    monkeypatch.setenv("npm_config_fetch_retry_mintimeout", "1")
    packages(monkeypatch, {"made": "1.0.0"})
    with pytest.raises(cache.NetworkAbsent, match="npm install"):
        node.modules("some")


def test_a_machine_without_npm_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    packages(monkeypatch, {"made": "1.0.0"})
    with pytest.raises(node.NpmAbsent, match="apt-get install npm"):
        node.modules("some")
