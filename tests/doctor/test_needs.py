"""What the named environments need of a machine."""

from __future__ import annotations

import pytest
from testkit.gateways import environment_settings

from openenv_gateway.doctor.needs import Needs
from openenv_gateway.settings import Source


@pytest.mark.parametrize(
    ("sources", "needs"),
    [
        ([], Needs()),
        ([Source("demo"), Source("cmd", "x"), Source("http", "http://x")], Needs()),
        ([Source("docker", "a:1"), Source("docker", "a:1"), Source("swarm", "b")], Needs(engine=True, images=("a:1", "b"))),
        ([Source("uv", "/envs/echo")], Needs(uv=True)),
        ([Source("uv", "git+https://host/x")], Needs(uv=True, git=True)),
        ([Source("hf", "org/Space_1", launch="uv")], Needs(uv=True, git=True)),
        ([Source("hf", "org/Space_1")], Needs(engine=True, images=("registry.hf.space/org-space-1:latest",))),
    ],
)
def test_sources_need_what_launches_them(sources: list[Source], needs: Needs) -> None:
    assert Needs.of(environment_settings("", str(number), source=each) for number, each in enumerate(sources)) == needs
