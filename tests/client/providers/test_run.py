"""run.py: from start to stop, in whatever order and from whichever thread the calls come."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from openenv_client.errors import LaunchFailed
from openenv_client.providers.ready import wait_until_healthy
from openenv_client.providers.run import Phase, Plan, Run, says_address_in_use

SERVER = str(Path(__file__).with_name("plain_server.py"))


@pytest.fixture
def run() -> Iterator[Run]:
    made = Run("the server", "its process", "127.0.0.1", 0, stop_grace_s=5.0)
    yield made
    made.end()


def plan(*command: str) -> Plan:
    return Plan(command, dict(os.environ))


def url(run: Run) -> str:
    return f"http://127.0.0.1:{run.port}"


def test_a_run_has_its_port_before_its_server(run: Run) -> None:
    assert (run.phase, run.poll(), run.logs(5)) == (Phase.STARTING, None, "")
    run.launch(plan(sys.executable, SERVER, str(run.port)))
    wait_until_healthy(url(run), 10, run.pause)
    assert (run.phase, run.poll()) == (Phase.LAUNCHED, None)


def test_a_server_that_cannot_share_the_reservation_is_launched_again_without_it(run: Run) -> None:
    run.launch(plan(sys.executable, SERVER, str(run.port), "greedy"))
    wait_until_healthy(url(run), 20, run.pause)
    assert run.poll() is None


def test_a_server_whose_address_is_in_use_for_another_reason_fails_at_the_second_time(run: Run) -> None:
    run.launch(plan("sh", "-c", "echo 'OSError: [Errno 98] Address already in use' >&2; exit 1"))
    with pytest.raises(LaunchFailed, match="its process exited prematurely with code 1") as caught:
        wait_until_healthy(url(run), 20, run.pause)
    assert "Address already in use" in caught.value.log


def test_a_helper_runs_to_its_end_and_its_output_is_given(run: Run) -> None:
    assert run.run_to_end(plan("sh", "-c", "echo done; exit 3"), 10) == (3, "done")


def test_a_helper_that_takes_too_long_is_ended(run: Run) -> None:
    status, _ = run.run_to_end(plan("sleep", "600"), 0.1)
    assert status is None


def test_a_helper_ends_when_the_run_is_ended(run: Run) -> None:
    outcome: list[object] = []

    def prepare() -> None:
        try:
            outcome.append(run.run_to_end(plan("sh", "-c", "echo up; sleep 600"), 600))
        except LaunchFailed as exc:
            outcome.append(exc.reason)

    thread = threading.Thread(target=prepare)
    thread.start()
    wait_for(lambda: run.logs(1) == "up")
    run.end()
    thread.join(5)
    assert outcome == ["it was stopped while it was starting"]


def test_nothing_can_be_launched_in_a_run_that_has_ended(run: Run) -> None:
    run.end()
    with pytest.raises(LaunchFailed, match="it was stopped while it was starting"):
        run.launch(plan("true"))
    assert (run.phase, run.poll()) == (Phase.ENDED, 0)


def test_what_is_to_be_tidied_up_is_tidied_once_also_when_it_comes_too_late(run: Run) -> None:
    done: list[str] = []
    run.on_end(lambda: done.append("first"))
    run.end()
    run.end()
    run.on_end(lambda: done.append("late"))
    assert done == ["first", "late"]


def test_waiting_for_what_was_never_launched_is_an_error(run: Run) -> None:
    with pytest.raises(LaunchFailed, match="it has not been launched"):
        run.pause(0)


def test_an_error_quotes_the_end_of_the_log_and_no_more_than_a_person_reads(run: Run) -> None:
    run.launch(plan("sh", "-c", "head -c 50000 /dev/zero | tr '\\0' x; echo; echo the end"))
    with pytest.raises(LaunchFailed) as caught:
        run.pause(10)
    assert caught.value.log.endswith("x\nthe end")
    assert len(caught.value.log) <= 4000


@pytest.mark.parametrize(
    ("log", "says"),
    [
        ("ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', 1): address already in use", True),
        ("Error: listen EADDRINUSE: address already in use 127.0.0.1:80", True),
        ("OSError: [Errno 48] Address already in use", True),
        ("ModuleNotFoundError: No module named 'server'", False),
    ],
)
def test_a_failed_bind_is_known_by_its_words(log: str, says: bool) -> None:
    assert says_address_in_use(log) is says


def wait_for(holds: Callable[[], bool]) -> None:
    for _ in range(1000):
        if holds():
            return
        threading.Event().wait(0.01)
    raise AssertionError("it did not come to hold within 10 s")
