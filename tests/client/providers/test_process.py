"""process.py: a child process that is watched, heard, and ended with everything that came from it."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from testkit import leftovers

from openenv_client.errors import LaunchFailed
from openenv_client.providers.process import ChildProcess

Spawn = Callable[..., ChildProcess]
SERVER = str(Path(__file__).with_name("plain_server.py"))
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); signal.pause()"


@pytest.fixture
def mark() -> dict[str, str]:
    return leftovers.new_mark()


@pytest.fixture
def spawn(mark: dict[str, str]) -> Iterator[Spawn]:
    """Runs a command with the mark; ends it after the test, and checks that it left nothing."""
    children: list[ChildProcess] = []

    def run(*command: str, grace_s: float = 5.0, **variables: str) -> ChildProcess:
        env = {**os.environ, **mark, **variables}
        children.append(ChildProcess(command, env=env, stop_grace_s=grace_s))
        return children[-1]

    yield run
    for child in children:
        child.stop()
    assert leftovers.marked(mark) == []


def wait_for_line(child: ChildProcess, text: str, timeout_s: float = 10.0) -> None:
    deadline = time.monotonic() + timeout_s
    while text not in child.logs():
        assert time.monotonic() < deadline, f"no {text!r} in {child.logs()!r}"
        child.wait(0.01)


def in_python(code: str) -> tuple[str, str, str]:
    return sys.executable, "-c", code


def test_it_runs_until_it_ends_and_then_has_an_exit_status_and_its_whole_output(spawn: Spawn) -> None:
    child = spawn("sh", "-c", "echo out; echo err >&2; read line || exit 7")
    assert child.wait(10) == 7
    assert child.poll() == 7
    assert child.logs() == "out\nerr"


def test_a_process_ended_by_a_signal_has_the_negative_number_as_status(spawn: Spawn) -> None:
    assert spawn("sh", "-c", "kill -SEGV $$").wait(10) == -signal.SIGSEGV


def test_a_megabyte_of_output_blocks_nothing_and_leaves_its_end(spawn: Spawn) -> None:
    child = spawn("sh", "-c", "yes 0123456789abcdef | head -n 65536; echo last; exit 5")
    assert child.wait(20) == 5
    assert child.logs(2) == "0123456789abcdef\nlast"


def test_output_that_never_ends_does_not_hide_the_stop(spawn: Spawn) -> None:
    child = spawn("yes")
    wait_for_line(child, "y")
    child.stop()
    assert child.poll() == -signal.SIGTERM


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (("no-such-command-anywhere",), "it could not be run: No such file or directory"),
        (("/etc/passwd",), "it could not be run: Permission denied"),
        (("sh", "-c", "a\0b"), "it could not be run: embedded null byte"),
    ],
)
def test_a_command_that_cannot_be_run_fails_at_once(spawn: Spawn, command: tuple[str, ...], why: str) -> None:
    with pytest.raises(LaunchFailed, match=why):
        spawn(*command)


def test_stopping_says_terminate_first_and_lets_it_finish(spawn: Spawn) -> None:
    child = spawn("sh", "-c", "trap 'echo bye; exit 9' TERM; echo up; while :; do sleep 0.05; done")
    wait_for_line(child, "up")
    child.stop()
    child.stop()
    assert (child.poll(), child.logs(1)) == (9, "bye")


def test_what_ignores_the_termination_is_killed_after_the_grace(spawn: Spawn) -> None:
    child = spawn(*in_python(DEAF), grace_s=0.2)
    wait_for_line(child, "up")
    began = time.monotonic()
    child.stop()
    assert child.poll() == -signal.SIGKILL
    assert 0.2 <= time.monotonic() - began < 5


def test_stopping_from_several_threads_at_once_is_one_stop(spawn: Spawn) -> None:
    child = spawn("sleep", "600")
    threads = [threading.Thread(target=child.stop) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert child.poll() == -signal.SIGTERM


def test_grandchildren_end_too_even_those_that_left_the_session_and_ignore_signals(
    spawn: Spawn, mark: dict[str, str]
) -> None:
    child = spawn(sys.executable, SERVER, "0", "child", grace_s=0.3)
    wait_for_line(child, "serving on")
    wait_for_line(child, "child up")
    assert len(leftovers.marked(mark)) == 3  # the guard, the server, the one that left
    child.stop()
    assert leftovers.marked(mark) == []


def test_what_a_command_left_running_when_it_ended_is_ended_as_well(spawn: Spawn, mark: dict[str, str]) -> None:
    child = spawn("sh", "-c", "sleep 600 & setsid sleep 600 & exit 4")
    assert child.wait(10) == 4
    assert leftovers.wait_until_gone(mark, 5) == []


def test_a_killed_guard_takes_its_server_along_and_the_log_says_so(spawn: Spawn, mark: dict[str, str]) -> None:
    child = spawn("sh", "-c", "sleep 600 | cat")
    guard = next(process for process in leftovers.marked(mark) if "_guard.py" in leftovers.command_of(process))
    os.kill(guard, signal.SIGKILL)
    assert child.wait(10) == -signal.SIGKILL
    assert leftovers.wait_until_gone(mark, 5) == []
    assert "the guard of this server was killed" in child.logs()


def test_a_terminated_guard_ends_its_server_in_order(spawn: Spawn, mark: dict[str, str]) -> None:
    child = spawn("sleep", "600")
    guard = next(process for process in leftovers.marked(mark) if "_guard.py" in leftovers.command_of(process))
    os.kill(guard, signal.SIGTERM)
    assert child.wait(10) == -signal.SIGTERM


def test_a_child_starts_with_the_signals_that_a_shell_would_give_it(spawn: Spawn) -> None:
    child = spawn("sh", "-c", "yes | head -n 1; kill -PIPE $$; echo still here")
    assert child.wait(10) == -signal.SIGPIPE
    assert child.logs() == "y"
