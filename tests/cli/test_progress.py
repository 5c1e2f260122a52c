"""Signs of life."""

from __future__ import annotations

import asyncio
import json

import pytest
from testkit.gateways import environment_settings

from openenv_gateway.cli import progress


async def test_what_takes_long_is_told_and_what_is_fast_is_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "QUIET_S", 0.0)
    environments = [environment_settings("http://127.0.0.1:9", name) for name in ("a", "b", "c", "d")]
    async with progress.starting(environments):
        for _ in range(5):
            await asyncio.sleep(0)
    told = capsys.readouterr()
    at = "(http://127.0.0.1:9)"
    assert told.err.startswith(f"Starting a {at}, b {at}, c {at} and 1 more … 0 s")
    assert told.out == ""
    monkeypatch.setattr(progress, "QUIET_S", 60.0)
    async with progress.starting(environments):
        await asyncio.sleep(0)
    assert capsys.readouterr().err == ""


async def test_programs_are_told_in_lines_of_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(progress, "QUIET_S", 0.0)
    async with progress.starting([environment_settings("http://127.0.0.1:1", name) for name in "ab"], as_json=True):
        await asyncio.sleep(0.05)
    told = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(line["event"], line["environments"]) for line in told] == [("starting", ["a", "b"])]
