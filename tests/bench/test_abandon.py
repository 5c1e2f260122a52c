"""Lanes that are dropped without a word, in small; `abandon.py` does it with 500 of them over five minutes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from testkit import images
from testkit.containers import gateway_image
from tests.bench.abandon import Load, measure

DEMO = """
EXPOSE 8000
HEALTHCHECK NONE
ENTRYPOINT ["python", "-m", "openenv_gateway.demo", "--host", "0.0.0.0", "--port", "8000"]
CMD []
"""


def test_what_lanes_held_that_were_dropped_is_given_back(record_property: Callable[[str, object], None]) -> None:
    """Else `measure` raises."""
    before, most, after = measure(Load(lanes=60, seconds=6, idle_s=0.5))
    record_property("dropped lanes", f"before {before}, most {most}, after {after}")
    assert most.processes > 0 and most.sockets > before.sockets


@pytest.mark.docker
def test_what_lanes_held_on_containers_is_given_back(
    docker_engine: None, record_property: Callable[[str, object], None]
) -> None:
    image = images.built(f"FROM {gateway_image()}{DEMO}", [])
    before, most, after = measure(Load(lanes=40, seconds=6, idle_s=0.5, source=f"docker:{image}"))
    record_property("dropped lanes on containers", f"before {before}, most {most}, after {after}")
    assert most.containers > 0 and after.containers == 0
