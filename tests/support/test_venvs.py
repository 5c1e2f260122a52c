"""testkit.venvs: built once, whole or not at all, and never silently."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from testkit import cache, venvs


def a_wheel(folder: Path, name: str = "made_here", module: str = "made_here.py", source: str = "ANSWER = 42\n") -> Path:
    """A package of one module, installable without any network."""
    path = folder / f"{name}-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(module, source)
        wheel.writestr(f"{name}-1.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        wheel.writestr(f"{name}-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{name}-1.dist-info/RECORD", f"{module},,\n")
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


def test_another_checkout_with_the_same_python_finds_the_same_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other" / ".venv" / "bin" / "python"
    other.parent.mkdir(parents=True)
    other.symlink_to(sys.executable)
    other.with_name("uv").symlink_to(venvs.uv())
    first = venvs.venv("bare")
    monkeypatch.setattr(sys, "executable", str(other))
    assert venvs.venv("bare") == first


def test_a_half_built_environment_is_built_anew() -> None:
    folder = venvs.venv("bare").parent.parent
    (folder / ".complete").unlink()
    (folder / "left-over").touch()
    venvs.venv("bare")
    assert not (folder / "left-over").exists()


def test_other_requirements_make_another_environment_that_holds_them(tmp_path: Path) -> None:
    python = venvs.venv("bare", str(a_wheel(tmp_path)))
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


GRADIO = ("gradio", "gradio/component_meta.py")


def test_gradio_writes_no_stubs_at_every_import_and_the_cache_of_uv_is_left_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))  # beside the environments, so that files are shared by hard links
    source = "def create_or_modify_pyi(component_class, class_name, events):\n    raise SystemExit('writes')\n"
    python = venvs.venv("with-gradio", str(a_wheel(tmp_path, *GRADIO, source)))
    assert printed(python, "from gradio import component_meta as it; print(it.create_or_modify_pyi(int, 'int', []))") == "None"
    (cached,) = (tmp_path / "uv").rglob("component_meta.py")
    assert cached.read_text("utf-8") == source


def test_a_gradio_that_writes_them_elsewhere_is_told(tmp_path: Path) -> None:
    with pytest.raises(venvs.VenvFailed, match="writes no stubs any more: take _write_no_stubs out"):
        venvs.venv("with-gradio", str(a_wheel(tmp_path, *GRADIO)))


def test_what_there_is_but_once_is_used_by_one_process_at_a_time(empty_cache: Path) -> None:
    script = "import sys; from testkit.cache import alone\nwith alone('port'): print('inside', flush=True); sys.stdin.read()"
    support = str(Path(__file__).parent)
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {support!r})\n{script}"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as other, ThreadPoolExecutor(1) as pool:
        assert other.stdout is not None and other.stdin is not None
        assert other.stdout.readline() == "inside\n"

        def enter() -> None:
            with cache.alone("port"):
                pass

        waiting = pool.submit(enter)
        with pytest.raises(TimeoutError):
            waiting.result(timeout=0.3)
        other.stdin.close()
        waiting.result(timeout=30)
