"""How a run is spread over processes, by pytest-xdist: `pytest -n auto`, or any `-n`.

A file's tests stay together and in order, since its fixtures start the servers that they share. Files that play with real peers
come first: they take longest, and the short ones then fill the gaps at the end. Without `-n` nothing here applies: one file
alone is done sooner in one process.

A plugin of hooks, registered by `tests/conftest.py`.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from typing import Final

import pytest

PER_CPU: Final = 2
"""Many tests wait for another process most of their time."""
AT_MOST: Final = 8
"""Every process starts servers of its own."""


@pytest.hookimpl(wrapper=True)  # around all others: xdist decides there what `-n` alone means
def pytest_cmdline_main(config: pytest.Config) -> Generator[None, object, object]:
    """Where `-n` comes without `--dist`, files are the units, in the order of `ordered`."""
    if config.option.numprocesses and config.option.dist == "no":
        config.option.dist = "loadfile"
        config.option.loadscopereorder = False
    return (yield)


def pytest_xdist_auto_num_workers() -> int:
    """What `-n auto` means here."""
    return min(AT_MOST, PER_CPU * len(os.sched_getaffinity(0)))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In a worker: the order of `ordered`."""
    if hasattr(config, "workerinput"):
        items[:] = ordered(items)


def ordered(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The files with a test marked `real` first, otherwise as they came."""
    real = {item.path for item in items if item.get_closest_marker("real")}
    return sorted(items, key=lambda item: item.path not in real)
