"""testkit.venvs: built once, whole or not at all, and never silently."""

from __future__ import annotations

import subprocess
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from testkit import venvs


def a_wheel(path: Path) -> Path:
    """A package of one line, installable without any network."""
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("made_here.py", "ANSWER = 42\n")
        wheel.writestr("made_here-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: made-here\nVersion: 1\n")
        wheel.writestr("made_here-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("made_here-1.dist-info/RECORD", "made_here.py,,\n")
    return path


def printed(python: Path, code: str) -> str:
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True, timeout=30).stdout.strip()


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OPENENV_GATEWAY_TEST_CACHE", str(tmp_path))
    return tmp_path


def test_the_python_runs_in_the_environment_that_was_made() -> None:
    python = venvs.venv("bare")
    assert Path(printed(python, "import sys; print(sys.prefix)")) == python.parent.parent


def test_concurrent_callers_get_one_environment_that_is_built_once(empty_cache: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        pythons = {future.result(timeout=60) for future in [pool.submit(venvs.venv, "bare") for _ in range(4)]}
    assert len(pythons) == 1
    assert [path.name for path in empty_cache.iterdir() if path.is_dir()] == [pythons.pop().parent.parent.name]


def test_a_half_built_environment_is_built_anew() -> None:
    folder = venvs.venv("bare").parent.parent
    (folder / ".complete").unlink()
    (folder / "left-over").touch()
    venvs.venv("bare")
    assert not (folder / "left-over").exists()


def test_other_requirements_make_another_environment_that_holds_them(tmp_path: Path) -> None:
    python = venvs.venv("bare", str(a_wheel(tmp_path / "made_here-1-py3-none-any.whl")))
    assert python != venvs.venv("bare")
    assert printed(python, "import made_here; print(made_here.ANSWER)") == "42"


def test_a_requirement_that_cannot_be_met_is_an_error_that_shows_what_uv_said(tmp_path: Path) -> None:
    with pytest.raises(venvs.VenvFailed, match="no-such-wheel") as failure:
        venvs.venv("broken", str(tmp_path / "no-such-wheel-1-py3-none-any.whl"))
    assert not isinstance(failure.value, venvs.NetworkAbsent)


def test_an_index_that_cannot_be_reached_is_told_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    with pytest.raises(venvs.NetworkAbsent, match="uv"):
        venvs.venv("offline", "packaging")
