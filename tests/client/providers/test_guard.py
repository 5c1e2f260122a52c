"""_guard.py: after kill -9 of the owner nothing is left within five seconds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from testkit import leftovers

from openenv_client.providers import _guard

OWNER = """
import os, sys, time
from openenv_client.providers.process import ChildProcess
child = ChildProcess(sys.argv[2:], env=os.environ)
while "up" not in child.logs():
    child.wait(0.01)
if sys.argv[1] == "forks" and not os.fork():
    time.sleep(600)  # a copy of the owner, with a copy of the pipe to the guard
print("ready", flush=True)
child.wait(600) if sys.argv[1] != "exits" else sys.exit(0)
"""
DEAF = "trap '' TERM; echo up; while :; do sleep 1; done"
COMMANDS = {
    "plain": ["sh", "-c", "echo up; exec sleep 600"],
    "a pipeline": ["sh", "-c", "echo up; sleep 600 | sleep 600 | cat"],
    "deaf to SIGTERM": ["sh", "-c", DEAF],
    "a pipeline of deaf ones": ["sh", "-c", f"({DEAF}) | (trap '' TERM; cat)"],
    "one that left the session": ["sh", "-c", "setsid sleep 600 & echo up; wait"],
}


@contextmanager
def owner(how: str, command: list[str], mark: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A process of its own that launched the command, and has seen it come up."""
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, how, *command], env={**os.environ, **mark}, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_nothing_outlives_an_owner_that_was_killed(command: list[str]) -> None:
    mark = leftovers.new_mark()
    with owner("waits", command, mark) as process:
        assert len(leftovers.marked(mark)) >= 3
        process.kill()
        process.wait(5)
        assert leftovers.wait_until_gone(mark, 5) == []


def test_nothing_outlives_an_owner_that_just_ended() -> None:
    mark = leftovers.new_mark()
    with owner("exits", COMMANDS["deaf to SIGTERM"], mark) as process:
        assert process.wait(5) == 0
        assert leftovers.wait_until_gone(mark, 5) == []


def test_a_forked_copy_of_the_owner_does_not_keep_the_server_alive() -> None:
    mark, servers = leftovers.new_mark(), leftovers.new_mark()
    variables = [f"{name}={value}" for name, value in servers.items()]
    with owner("forks", ["env", *variables, *COMMANDS["plain"]], mark) as process:
        process.kill()
        process.wait(5)
        assert leftovers.wait_until_gone(servers, 5) == []
        copies = [left for left in leftovers.marked(mark) if "ChildProcess" in leftovers.command_of(left)]
        assert len(copies) == 1
        os.kill(copies[0], signal.SIGKILL)
        assert leftovers.wait_until_gone(mark, 5) == []


def test_the_process_table_knows_parents_and_groups_whatever_a_process_is_called() -> None:
    with subprocess.Popen(["sh", "-c", "printf ') 1 2 (' > /proc/$$/comm; echo; exec cat"], stdout=-1, stdin=-1) as child:
        assert child.stdout is not None and child.stdout.readline() == b"\n"
        assert (child.pid, os.getpid(), os.getpgrp()) in _guard.process_table()
        child.communicate(timeout=5)
