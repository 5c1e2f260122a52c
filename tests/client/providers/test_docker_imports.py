"""The modules of the Docker providers are imported where they are needed, in whatever threads that is."""

from __future__ import annotations

import itertools
import subprocess
import sys

import pytest

ENTRIES = ("docker", "docker_reap", "swarm", "swarm_reap")
TOGETHER = """
import importlib, sys, threading
start, failed = threading.Barrier(2), []
def load(name):
    start.wait(10)
    try:
        importlib.import_module(f"openenv_client.providers.{name}")
    except ImportError as error:
        failed.append(str(error))
threads = [threading.Thread(target=load, args=(name,)) for name in sys.argv[1:]]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
sys.exit(str(failed) if failed else 0)
"""


@pytest.mark.parametrize("two", list(itertools.combinations(ENTRIES, 2)), ids="+".join)
def test_two_threads_may_import_two_of_them_at_the_same_time(two: tuple[str, str]) -> None:
    done = subprocess.run([sys.executable, "-c", TOGETHER, *two], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
