"""What a `tools/call` costs: the gateway beside the floor, measured in turn, so that both meet the same neighbours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from tests.bench import peers
from tests.bench.load import Load, Plan
from tests.bench.peers import NAME, TOKEN, Observation


@dataclass(frozen=True, slots=True)
class Case:
    """What is measured: so many sessions, one era, one kind of observation."""

    sessions: int
    era: str
    observation: Observation


@dataclass(frozen=True, slots=True)
class Round:
    """Floor and gateway, one right after the other."""

    floor: Load
    gateway: Load

    def ratio(self, field: str) -> float:
        """The gateway's number over the floor's."""
        gateway: float = getattr(self.gateway, field)
        floor: float = getattr(self.floor, field)
        return gateway / floor


@dataclass(frozen=True, slots=True)
class Measured:
    """All rounds of one case."""

    case: Case
    rounds: tuple[Round, ...]

    def floor(self, field: str) -> float:
        """The median over the rounds."""
        return _median([getattr(one.floor, field) for one in self.rounds])

    def gateway(self, field: str) -> float:
        """The median over the rounds."""
        return _median([getattr(one.gateway, field) for one in self.rounds])

    def ratio(self, field: str) -> float:
        """The median of the rounds' ratios: a neighbour that comes and goes between rounds weighs on both sides alike."""
        return _median([one.ratio(field) for one in self.rounds])

    def spread(self, field: str) -> tuple[float, float]:
        """The lowest and the highest ratio: how noisy the machine was."""
        ratios = [one.ratio(field) for one in self.rounds]
        return min(ratios), max(ratios)


def cases(sessions: Sequence[int], eras: Sequence[str], observations: Sequence[Observation]) -> list[Case]:
    """Every combination."""
    return [Case(count, era, what) for what in observations for era in eras for count in sessions]


def measure(case: Case, rounds: int, seconds: float, loop: str, say: Callable[[str], None]) -> Measured:
    """Measure one case; `loop` is the floor's event loop. Raises LoadFailed, ServerFailed or TimeoutError."""
    done: list[Round] = []
    for number in range(rounds):
        sides: dict[str, Load] = {}
        # In turn first and second: what heats up or settles during a round favours neither side.
        for side in ("floor", "gateway") if number % 2 == 0 else ("gateway", "floor"):
            sides[side] = _floor(case, seconds, loop) if side == "floor" else _gateway(case, seconds)
        one = Round(**sides)
        done.append(one)
        say(f"{case.sessions:4} sessions, {case.era}, {case.observation}: CPU x{one.ratio('cpu_us'):.2f}")
    return Measured(case, tuple(done))


def _median(numbers: Sequence[float]) -> float:
    return float(median(numbers))


def _floor(case: Case, seconds: float, loop: str) -> Load:
    with peers.environment(case.observation) as environment, peers.floor(environment.base_url, loop) as floor:
        return peers.load(Plan(f"{floor.base_url}/mcp", floor.pid, case.sessions, seconds, case.era))


def _gateway(case: Case, seconds: float) -> Load:
    with peers.environment(case.observation) as environment, peers.gateway(environment.base_url) as gateway:
        return peers.load(Plan(gateway.url(NAME), gateway.pid, case.sessions, seconds, case.era, True, TOKEN))
