"""The official conformance suites judge the gateway, in front of an environment that offers the tools they call.

What is unmet is listed one by one, with its reason, in `expected_*.yml`. An unlisted unmet check fails, and so does an entry
that is met: the lists stay as short as they can be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from testkit import cli, node, servers, suites, venvs

pytestmark = pytest.mark.real

HERE = Path(__file__).parent
SESSIONS = "256"  # the suites leave most of their sessions open


@dataclass(frozen=True)
class Suite:
    """One run of a suite. `scenarios`: how many it has, so that a run that stopped half-way is noticed."""

    name: str
    alias: str
    scenarios: int
    options: tuple[str, ...] = ()
    query: str = ""

    @property
    def expected(self) -> Path:
        return HERE / f"expected_{self.name}.yml"


SUITES = (
    Suite("0.1.16", node.STABLE_SUITE, 30),
    Suite("2025-11-25", node.NEXT_SUITE, 33, ("--requirements", "2025-11-25")),
    # The suite's calls carry no handle, as an environment's tools do in this revision: the URL names whose episode they play.
    Suite("2026-07-28", node.NEXT_SUITE, 50, ("--requirements", "2026-07-28"), "?session=conformance"),
)


@pytest.fixture(scope="module")
def judged_url(venv_python: Callable[[str], Path], node_modules: Callable[[str], Path]) -> Iterator[str]:
    """The gateway's MCP URL of an environment with the suites' tools."""
    venv_python(venvs.OPENENV_0_10)
    node_modules(node.SUITES)
    with servers.launch("judged", env={"MAX_SESSIONS": SESSIONS}) as server:
        with cli.serving(f"judged={server.base_url}?schemas=native&poll_after_s=2") as gateway:
            yield gateway.url("judged")


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_every_check_of_the_suite_is_met_but_for_those_listed_with_a_reason(
    suite: Suite, judged_url: str, tmp_path: Path
) -> None:
    verdicts = suites.run(suite.alias, judged_url + suite.query, tmp_path, *suite.options)
    assert len(verdicts) == suite.scenarios
    difference = suites.compare(verdicts, suites.expected(suite.expected))
    assert difference.unexpected == {}, "unmet, but not listed"
    assert difference.stale == (), f"listed in {suite.expected.name}, but met: take them out"
