"""A sign of life while something takes long: a live line on a terminal, now and then a plain line elsewhere. On stderr."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import click

from openenv_gateway.settings import EnvironmentSettings

QUIET_S = 1.5
"""What is faster needs no line."""
AGAIN_S = 15.0


@asynccontextmanager
async def starting(environments: Sequence[EnvironmentSettings], *, as_json: bool = False) -> AsyncIterator[None]:
    """Says, while the block runs for long, which environments are being started; `as_json`: as lines of JSON."""
    names = ", ".join(f"{environment.name} ({environment.source})" for environment in environments[:3])
    more = f" and {len(environments) - 3} more" if len(environments) > 3 else ""
    told = _tell_programs([one.name for one in environments]) if as_json else _tell(f"Starting {names}{more}")
    teller = asyncio.create_task(told, name="progress")
    try:
        yield
    finally:
        teller.cancel()
        await asyncio.gather(teller, return_exceptions=True)


async def _tell_programs(names: list[str]) -> None:
    began = time.monotonic()
    await asyncio.sleep(QUIET_S)
    while True:
        line = {"event": "starting", "environments": names, "seconds": round(time.monotonic() - began, 1)}
        click.echo(json.dumps(line), err=True)
        await asyncio.sleep(AGAIN_S)


async def _tell(what: str) -> None:
    began = time.monotonic()
    await asyncio.sleep(QUIET_S)
    if sys.stderr.isatty():
        from rich.console import Console  # noqa: PLC0415  (only a terminal needs it, and it takes its time to import)

        with Console(stderr=True).status(f"{what} … the first start may have to download") as status:
            while True:
                await asyncio.sleep(1)
                status.update(f"{what} … {time.monotonic() - began:.0f} s")
    while True:
        click.echo(f"{what} … {time.monotonic() - began:.0f} s", err=True)
        await asyncio.sleep(AGAIN_S)
