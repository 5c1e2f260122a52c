"""Runs one command and leaves nothing of it behind, whatever becomes of the process that asked for it.

A script of its own (`python -I -S _guard.py CONTROL STATUS OWNER STOP_GRACE ORPHAN_GRACE COMMAND...`), because only a process
that outlives the owner can clean up after `kill -9` of the owner. It costs about 25 ms and 10 MB per server.

The owner holds the other ends of two pipes. On CONTROL, `S` means stop; end-of-file means that the owner is gone. Forked
copies of the owner may hold that pipe open, so the owner's pidfd is watched too. On STATUS the guard writes lines:
`pid N` or `failed ERRNO` first, then `exit STATUS` when the command ends.

The command gets a session of its own. The guard adopts orphans (Linux), so a browser or a daemon that left the session is
still found and ended. Ending: SIGTERM, grace, SIGKILL, until no process is left. The same happens when the command ends by
itself and leaves others running, and when the guard gets SIGTERM.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import time

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
ON_LINUX = sys.platform == "linux"
GIVE_UP_AFTER_KILL_S = 10.0


def main(arguments: list[str]) -> int:
    control, status, owner = (int(number) for number in arguments[:3])
    stop_grace_s, orphan_grace_s = (float(number) for number in arguments[3:5])
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for descriptor in (control, status):
        os.set_inheritable(descriptor, False)
    alarm = signals_as_bytes()
    adopts = prctl(PR_SET_CHILD_SUBREAPER, 1)
    process, failure = launch(arguments[5:])
    if failure:
        tell(status, f"failed {failure}")
        return 127
    tell(status, f"pid {process}")
    family = Family(process, status, adopts)
    asked = wait_for_the_end(family, control, owner, alarm)
    family.end(stop_grace_s if asked else orphan_grace_s, alarm)
    return 0


def signals_as_bytes() -> int:
    """A descriptor that becomes readable at each signal; reading it gives the signal numbers."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    return reading


def launch(command: list[str]) -> tuple[int, int]:
    """The new process and 0, or the errno that kept it from starting. This process has one thread, so fork is safe."""
    reading, writing = os.pipe()
    process = os.fork()
    if not process:
        become(command, writing)
    os.close(writing)
    failure = os.read(reading, 16)  # end-of-file: the exec closed it
    os.close(reading)
    return process, int(failure or 0)


def become(command: list[str], report: int) -> None:
    try:
        os.setsid()
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # ignored by Python, and what is ignored stays so through exec
            signal.signal(number, signal.SIG_DFL)
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # in case that the guard itself is killed
        os.execvp(command[0], command)
    except OSError as exc:
        os.write(report, str(exc.errno).encode())
    finally:
        os._exit(127)


def wait_for_the_end(family: Family, control: int, owner: int, alarm: int) -> bool:
    """Returns True if asked to stop, False if the owner is gone, the guard was signalled or the command ended."""
    poller = select.poll()
    for descriptor in (control, alarm, *owner_descriptors(owner)):
        poller.register(descriptor, select.POLLIN)
    while os.getppid() == owner:
        ready = {descriptor for descriptor, _ in poller.poll()}
        if control in ready:
            return os.read(control, 1) == b"S"
        if alarm in ready:
            if set(os.read(alarm, 512)) - {signal.SIGCHLD} or not family.command_runs():
                return False
    return False


def owner_descriptors(owner: int) -> list[int]:
    """The pidfd of the owner, readable when it ends; none on systems without it. A recycled pid is no danger: see getppid."""
    try:
        return [os.pidfd_open(owner)]
    except (AttributeError, OSError):
        return []


class Family:
    """The command and everything that came from it."""

    def __init__(self, process: int, status: int, adopts: bool) -> None:
        self._process, self._adopts = process, adopts
        self._status: int | None = status

    def command_runs(self) -> bool:
        self._reap()
        return self._status is not None

    def end(self, grace_s: float, alarm: int) -> None:
        self._signal(signal.SIGTERM)
        if not self._gone_within(grace_s, alarm, again=None):
            if not self._gone_within(GIVE_UP_AFTER_KILL_S, alarm, again=signal.SIGKILL):
                complain("some processes of this server could not be killed")

    def _gone_within(self, seconds: float, alarm: int, again: signal.Signals | None) -> bool:
        """Waits; with `again`, that signal is sent over and over, because a process may fork while it is being killed."""
        poller = select.poll()
        poller.register(alarm, select.POLLIN)
        deadline = time.monotonic() + seconds
        while self._anything_left():
            if time.monotonic() >= deadline:
                return False
            if again:
                self._signal(again)
            if poller.poll(50):
                os.read(alarm, 512)
        return True

    def _anything_left(self) -> bool:
        children = self._reap()
        if self._adopts:
            return children  # every orphan was adopted, so no children means no descendants
        try:
            os.killpg(self._process, 0)
        except OSError:
            return False
        return True

    def _reap(self) -> bool:
        """Collects the ended children, tells the owner about the command's end; whether any child is left."""
        while True:
            try:
                process, how = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if not process:
                return True
            if process == self._process and self._status is not None:
                tell(self._status, f"exit {os.waitstatus_to_exitcode(how)}")
                self._status = None

    def _signal(self, number: signal.Signals) -> None:
        for group in self._groups():
            try:
                os.killpg(group, number)
            except ProcessLookupError:
                continue
            except PermissionError:
                complain(f"not allowed to end process group {group}")

    def _groups(self) -> set[int]:
        """Whole groups, so that no fork slips through. Descendants lead sessions of their own: no group has strangers in it."""
        if not self._adopts:
            return {self._process}
        parents = {process: (parent, group) for process, parent, group in process_table()}
        found, generation = set(), {os.getpid()}
        while generation:
            generation = {process for process, (parent, _) in parents.items() if parent in generation}
            found |= {parents[process][1] for process in generation}
        return found - {os.getpgrp()}


def process_table() -> list[tuple[int, int, int]]:
    """(pid, parent, process group) of every process, from /proc/PID/stat (proc(5): fields 1, 4, 5; 2 may hold anything)."""
    table = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    _, parent, group = file.read().rpartition(b")")[2].split()[:3]
            except OSError:
                continue  # it ended meanwhile
            table.append((int(name), int(parent), int(group)))
    return table


def tell(status: int, line: str) -> None:
    try:
        os.write(status, line.encode() + b"\n")
    except BrokenPipeError:
        return  # the owner is gone; the end that follows is the answer to that


def complain(text: str) -> None:
    """Into the server's log. If nobody reads that any longer, the work goes on all the same."""
    try:
        os.write(sys.stderr.fileno(), f"openenv_client: {text}\n".encode())
    except BrokenPipeError:
        return


def prctl(option: int, value: int) -> bool:
    """Whether this kernel did it."""
    return ON_LINUX and not ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
