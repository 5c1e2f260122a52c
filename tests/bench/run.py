"""What the gateway costs, measured beside a relay that does nothing else (`floor.py`), in one run on one machine.

    .venv/bin/pip install -q -e '.[test,bench]'
    .venv/bin/python tests/bench/run.py                      # everything, median of 5: about 45 minutes
    .venv/bin/python tests/bench/run.py --quick              # one round
    .venv/bin/python tests/bench/run.py --sessions 16 --eras legacy --observations 1000 --skip-upkeep

Every measurement has processes of its own: a zero-cost environment, the floor or the gateway, the load generator. CPU is that
of the floor's or the gateway's process alone. The gateway checks tokens, sessions and arguments, as it does in earnest.

Floor and gateway are measured in turn; a ratio is the median of the rounds' ratios, with the lowest and the highest, which tell
how much the neighbours on the machine disturbed. An observation of `500000` bytes is one text; `500000:numbers` is an array, as
pictures are. With --json FILE everything is written there too, round by round.

Exit status 1: something was not answered as it must be; the message says what.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from testkit.servers import ServerFailed
from tests.bench import calls, peers, tables, upkeep
from tests.bench.agent import VERSIONS, WrongAnswer
from tests.bench.calls import Measured
from tests.bench.peers import Observation

OBSERVATIONS = [Observation(1000), Observation(500_000)]
PACKAGES = ("uvicorn", "httptools", "websockets", "orjson")


@dataclass(frozen=True, slots=True)
class Machine:
    """Where and when it was measured. `load` is the machine's load average over a minute, before and after."""

    processor: str
    cores: int
    python: str
    packages: dict[str, str]
    floor_loop: str
    date: str
    load: tuple[float, float]

    def __str__(self) -> str:
        packages = ", ".join(f"{name} {number}" for name, number in self.packages.items())
        return (
            f"{self.date}, {self.processor}, {self.cores} cores, Python {self.python}, {packages}; floor on {self.floor_loop}; "
            f"load average {self.load[0]:.1f} before, {self.load[1]:.1f} after"
        )


def main() -> int:
    given = _arguments()
    rounds, load = 1 if given.quick else given.rounds, os.getloadavg()[0]
    try:
        wanted = calls.cases(given.sessions, given.eras, given.observations)
        measured = [calls.measure(case, rounds, given.seconds, given.floor_loop, _say) for case in wanted]
        aside = None if given.skip_upkeep else upkeep.measure(_sizes(given, rounds))
    except (peers.LoadFailed, ServerFailed, TimeoutError, WrongAnswer) as error:
        print(f"The benchmark ended: {error}", file=sys.stderr)
        return 1
    machine = _machine(given.floor_loop, load)
    print(f"{machine}; {rounds} round{'s' if rounds > 1 else ''} of {given.seconds:g} s\n")
    print(tables.calls_table(measured))
    if aside is not None:
        print(f"\n{tables.upkeep_table(aside)}")
    if given.json is not None:
        given.json.write_text(json.dumps(_everything(machine, measured, aside), indent=1) + "\n")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=_positive, default=5, metavar="N", help="the median of N rounds (default 5)")
    parser.add_argument("--quick", action="store_true", help="one round, whatever --rounds says")
    parser.add_argument("--seconds", type=float, default=4.0, help="of load in each measurement, after a second of warm-up")
    parser.add_argument("--sessions", type=_positive, nargs="+", default=[1, 16, 256])
    parser.add_argument("--eras", choices=VERSIONS, nargs="+", default=list(VERSIONS))
    parser.add_argument("--observations", type=_observation, nargs="+", metavar="BYTES[:FILL]", default=OBSERVATIONS)
    parser.add_argument("--floor-loop", choices=("uvloop", "asyncio"), default="uvloop", help="the floor's event loop")
    parser.add_argument("--skip-upkeep", action="store_true", help="calls only: no start-up, memory, idle connections")
    parser.add_argument("--lanes", type=_positive, default=200, help="idle lanes to measure the memory of")
    parser.add_argument("--abandoned", type=_positive, default=10_000, help="handshakes to abandon")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything there too")
    given = parser.parse_args()
    if given.floor_loop == "uvloop" and not peers.has_uvloop():
        parser.error("the floor runs on uvloop, which is not installed: install the extra 'bench', or say --floor-loop asyncio")
    return given


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return value


def _observation(text: str) -> Observation:
    size, _, fill = text.partition(":")
    if fill not in ("", "text", "numbers"):
        raise argparse.ArgumentTypeError(f"{fill!r} is neither text nor numbers")
    return Observation(_positive(size), fill or "text")


def _sizes(given: argparse.Namespace, rounds: int) -> upkeep.Sizes:
    return upkeep.Sizes(starts=rounds, lanes=given.lanes, abandoned=given.abandoned)


def _machine(loop: str, load: float) -> Machine:
    packages = {name: version(name) for name in (*PACKAGES, *(["uvloop"] if loop == "uvloop" else []))}
    return Machine(
        processor=_processor(),
        cores=os.cpu_count() or 1,
        python=platform.python_version(),
        packages=packages,
        floor_loop=loop,
        date=datetime.now(UTC).strftime("%Y-%m-%d"),
        load=(load, os.getloadavg()[0]),
    )


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _everything(machine: Machine, measured: Sequence[Measured], aside: upkeep.Upkeep | None) -> dict[str, Any]:
    return {
        "machine": asdict(machine),
        "calls": [asdict(one) for one in measured],
        "upkeep": None if aside is None else asdict(aside),
    }


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
