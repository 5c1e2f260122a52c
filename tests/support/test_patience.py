"""testkit.patience: a promise is held to the letter on an idle machine, and stretched as much as another one is busy."""

from __future__ import annotations

import os

import pytest
from testkit.patience import patience


@pytest.mark.parametrize(("load", "allowed"), [(0.0, 5.0), (2.0, 5.0), (6.0, 15.0), (200.0, 50.0)])
def test_five_seconds_on_two_cpus(monkeypatch: pytest.MonkeyPatch, load: float, allowed: float) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1})
    assert patience(5.0) == allowed
