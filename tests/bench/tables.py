"""Measurements as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from tests.bench.agent import VERSIONS
from tests.bench.calls import Measured
from tests.bench.upkeep import Upkeep

KIB, MIB = 2**10, 2**20
HEADER = (
    "| sessions | revision | observation | server | CPU µs/call | calls/s | p50 µs | p99 µs | RSS MB |",
    "| ---: | --- | --- | --- | ---: | ---: | ---: | ---: | ---: |",
)
RATIOS = ("cpu_us", "calls_s", "p50_us", "p99_us")


def calls_table(measured: Sequence[Measured]) -> str:
    """Two rows for each case: the floor, and the gateway with its ratios to it (the CPU's with the range over the rounds)."""
    return "\n".join([*HEADER, *[row for one in measured for row in _rows(one)]])


def upkeep_table(upkeep: Upkeep) -> str:
    """One row for each thing that is not a call."""
    grown = (upkeep.rss_after_second - upkeep.rss_after_first) / MIB
    streams = upkeep.idle_streams_cpu_s
    rows = [
        ("`stdio demo`: exec to the answer to `initialize`", f"{upkeep.start_s:.2f} s"),
        ("`serve`: RSS at rest", f"{upkeep.idle_rss / MIB:.1f} MB"),
        (f"RSS of an idle lane (of {upkeep.lanes})", f"{upkeep.lane_rss / KIB:.1f} KB"),
        (f"RSS before {upkeep.abandoned} abandoned handshakes", f"{upkeep.rss_before / MIB:.1f} MB"),
        ("… after they have expired", f"{upkeep.rss_after_first / MIB:.1f} MB"),
        ("… after as many again, and probes, have expired", f"{upkeep.rss_after_second / MIB:.1f} MB ({grown:+.1f} MB)"),
        ("status of probes", ", ".join(f"{probe} {status}" for probe, status in upkeep.probes.items())),
        (_idle("keep-alive connections", upkeep), _percent(upkeep.idle_connections_cpu_s, upkeep)),
        (_idle("GET streams", upkeep), "not offered" if streams is None else _percent(streams, upkeep)),
    ]
    return "\n".join(["| what | measured |", "| --- | ---: |", *[f"| {what} | {value} |" for what, value in rows]])


def _idle(what: str, upkeep: Upkeep) -> str:
    return f"CPU of {upkeep.idle_connections} idle {what} within {upkeep.idle_connections_s:g} s"


def _percent(cpu_s: float, upkeep: Upkeep) -> str:
    return f"{cpu_s * 1000:.1f} ms ({cpu_s / upkeep.idle_connections_s * 100:.2f} %)"


def _rows(measured: Measured) -> list[str]:
    case = measured.case
    low, high = measured.spread("cpu_us")
    told = {field: f" (×{measured.ratio(field):.2f})" for field in RATIOS}
    told["cpu_us"] = f" (×{measured.ratio('cpu_us'):.2f}, {low:.2f}–{high:.2f})"
    floor = {field: f"{measured.floor(field):.0f}" for field in RATIOS}
    gateway = {field: f"{measured.gateway(field):.0f}{told[field]}" for field in RATIOS}
    rss = f"{measured.floor('rss') / MIB:.0f}", f"{measured.gateway('rss') / MIB:.0f}"
    return [
        _row(str(case.sessions), VERSIONS[case.era], str(case.observation), "floor", *floor.values(), rss[0]),
        _row("", "", "", "gateway", *gateway.values(), rss[1]),
    ]


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
