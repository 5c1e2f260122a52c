"""The official conformance suites against one URL: what they check, and what of it is expected to be unmet.

Their exit code is not enough: a check that was skipped, or a scenario that checked nothing, counts as passed there. Here only a
check with the status SUCCESS (or INFO, which judges nothing) is met, and a scenario must have a met check.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from testkit import node

RUN_TIMEOUT_S: Final = 100.0
NOTHING: Final = "nothing-checked"
"""The check that a scenario without any other one is said to have failed."""

_FOLDER = re.compile(r"(?:server-)?(?P<scenario>.+)-\d{4}-\d\d-\d\dT[\d-]+Z")
_ENTRY = re.compile(r"\s+- (?P<name>[^\s#]+)(?:\s+# (?P<reason>\S.*))?")
_MET = ("SUCCESS", "INFO")


class SuiteFailed(RuntimeError):
    """A suite did not run to its end; the message holds what it printed."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One scenario: how many of its checks were met, and the unmet ones by id with what the suite says of them."""

    met: int
    unmet: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Difference:
    """What a run shows against what was expected. Names are `scenario:check`, those of `stale` as they were written."""

    unexpected: Mapping[str, str]
    stale: tuple[str, ...]


def run(alias: str, url: str, folder: Path, *options: str) -> dict[str, Verdict]:
    """Every scenario that the suite ran against the URL, by name. `folder` must be empty: the suite writes its results there.

    Raises SuiteFailed if it does not come to its summary within RUN_TIMEOUT_S seconds, and as testkit.node does.
    """
    command = [str(node.node()), str(node.suite(alias)), "server", "--url", url, "-o", str(folder), *options]
    printed = _output(command)
    if "=== SUMMARY ===" not in printed:
        raise SuiteFailed(f"{' '.join(command)} printed no summary:\n{printed[-4000:]}")
    return {scenario: _verdict(checks) for scenario, checks in _results(folder)}


def expected(file: Path) -> dict[str, str]:
    """The entries of a list of expected failures, each a scenario or `scenario:check`, with its reason.

    The file is in the suites' own format. Raises ValueError for an entry without a reason, or one that comes twice.
    """
    entries: dict[str, str] = {}
    for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#") or line == "server:":
            continue
        entry = _ENTRY.fullmatch(line)
        if entry is None or entry["reason"] is None or entry["name"] in entries:
            raise ValueError(f"{file.name}:{number} must be '  - scenario[:check]  # reason', once each: {line!r}")
        entries[entry["name"]] = entry["reason"]
    return entries


def compare(verdicts: Mapping[str, Verdict], entries: Mapping[str, str]) -> Difference:
    """Unmet checks that no entry names, and entries under which nothing is unmet."""
    unmet = {f"{scenario}:{check}": told for scenario, verdict in verdicts.items() for check, told in verdict.unmet.items()}
    excused = {name: next((entry for entry in (name, name.partition(":")[0]) if entry in entries), None) for name in unmet}
    used = set(excused.values())
    return Difference(
        unexpected={name: told for name, told in unmet.items() if excused[name] is None},
        stale=tuple(entry for entry in entries if entry not in used),
    )


def _output(command: Sequence[str]) -> str:
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        printed, _ = process.communicate(timeout=RUN_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        printed, _ = process.communicate()
        raise SuiteFailed(f"{' '.join(command)} did not end within {RUN_TIMEOUT_S:g} s:\n{printed[-4000:]}") from None
    return printed


def _results(folder: Path) -> Iterator[tuple[str, list[dict[str, str]]]]:
    for file in sorted(folder.glob("*/checks.json")):
        name = _FOLDER.fullmatch(file.parent.name)
        if name is None:
            raise SuiteFailed(f"the suite wrote a folder whose name tells no scenario: {file.parent.name}")
        yield name["scenario"], json.loads(file.read_text("utf-8"))


def _verdict(checks: Sequence[Mapping[str, str]]) -> Verdict:
    met = sum(1 for check in checks if check["status"] == "SUCCESS")
    unmet = {check["id"]: f"{check['status']}: {_told(check)}" for check in checks if check["status"] not in _MET}
    return Verdict(met, unmet if met or unmet else {NOTHING: "no check of this scenario applied"})


def _told(check: Mapping[str, str]) -> str:
    return (check.get("errorMessage") or json.dumps(check.get("details")))[:300]
