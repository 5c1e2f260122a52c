"""The benchmark runs, in its smallest form, and gets an answer to every call. How fast is not for a test to say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

RUN = Path(__file__).with_name("run.py")
SMALLEST = ["--quick", "--seconds", "0.2", "--floor-loop", "asyncio"]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(RUN), *SMALLEST, *arguments], capture_output=True, text=True, timeout=110)


def rows_of(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in table.splitlines() if line.startswith("| ")]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    """The printed report and the written one of one run."""
    file = tmp_path_factory.mktemp("bench") / "results.json"
    sizes = ["--sessions", "1", "4", "--observations", "1000", "--lanes", "5", "--abandoned", "20"]
    done = run(*sizes, "--json", str(file))
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads(file.read_text())


def test_each_case_has_a_row_for_the_floor_and_one_for_the_gateway_with_its_ratios(results: tuple[str, dict[str, Any]]) -> None:
    rows = rows_of(results[0].partition("| what |")[0])[2:]
    assert [row[:4] for row in rows if row[3] == "floor"] == [
        ["1", "2025-11-25", "1 KB text", "floor"],
        ["4", "2025-11-25", "1 KB text", "floor"],
        ["1", "2026-07-28", "1 KB text", "floor"],
        ["4", "2026-07-28", "1 KB text", "floor"],
    ]
    gateways = [row for row in rows if "gateway" in row]
    assert len(gateways) == 4
    assert all(row[-5].count("×") == 1 and "–" in row[-5] for row in gateways)


def test_every_call_was_answered_on_both_sides(results: tuple[str, dict[str, Any]]) -> None:
    loads = [one[side] for case in results[1]["calls"] for one in case["rounds"] for side in ("floor", "gateway")]
    assert len(loads) == 8  # an answer that is missing or wrong would have ended the run
    assert all(load["calls"] > 0 and load["cpu_us"] > 0 and load["rss"] > 0 for load in loads)


def test_the_rest_is_measured_too(results: tuple[str, dict[str, Any]]) -> None:
    printed = results[0].partition("| what |")[2]
    assert all(words in printed for words in ("`initialize`", "RSS at rest", "idle lane (of 5)", "20 abandoned", "20 idle"))
    upkeep = results[1]["upkeep"]
    assert upkeep["start_s"] > 0 and upkeep["idle_rss"] > 0 and upkeep["rss_after_second"] > 0
    assert upkeep["probes"]["GET /health"] == 200


def test_a_floor_without_its_event_loop_is_a_usage_error() -> None:
    done = run("--floor-loop", "twisted")
    assert done.returncode == 2
    assert "uvloop" in done.stderr
