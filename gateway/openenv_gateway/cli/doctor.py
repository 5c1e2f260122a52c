"""`doctor`: whether this machine can do what is asked of it, and why not."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import click

from openenv_gateway.cli.options import config_option, configure_logging, make_settings
from openenv_gateway.doctor import engine, machine, stale
from openenv_gateway.doctor.finding import Finding, Status
from openenv_gateway.doctor.needs import Needs
from openenv_gateway.doctor.trial import try_launch
from openenv_gateway.settings import EnvironmentSettings, GatewaySettings

STYLES = {Status.OK: "green", Status.NOTE: "yellow", Status.FAILED: "red"}


@click.command()
@click.argument("specs", metavar="[SPEC]...", nargs=-1)
@click.option("--host", help="Address on which serve would listen.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), help="Port on which serve would listen.  [default: 8700]")
@click.option("--reap", is_flag=True, help="Clear away what dead gateways left: containers, fetched repositories.")
@click.option("--json", "as_json", is_flag=True, help="The findings as one JSON object.")
@config_option
@click.pass_obj
def doctor(
    debug: bool,
    specs: tuple[str, ...],
    host: str | None,
    port: int | None,
    reap: bool,
    as_json: bool,
    config_file: Path | None,
) -> None:
    """Check this machine: Docker, uv, git, ports, room, leftovers.

    Each SPEC, and each environment of the configuration, is launched for real, reset once and stopped. Exit code 1 if a check
    failed; a note is no failure.
    """
    configure_logging(debug=debug)
    settings = GatewaySettings(())
    if specs or config_file is not None:
        settings = make_settings(specs, config_file=config_file, host=host, port=port)
    elif host is not None or port is not None:
        settings = GatewaySettings((), host=host or settings.host, port=settings.port if port is None else port)
    with _ended_like_ctrl_c():
        found = _told(_findings(settings, reap), as_json)
    if as_json:
        page = {"ok": not _has_failed(found), "findings": [finding.as_json() for finding in found]}
        click.echo(json.dumps(page, indent=2, ensure_ascii=False))
    if _has_failed(found):
        sys.exit(1)


def _findings(settings: GatewaySettings, reap: bool) -> Iterator[Finding]:
    needs = Needs.of(settings.environments)
    yield machine.python_version()
    yield machine.event_loop()
    yield machine.uv(is_needed=needs.uv)
    yield machine.git(is_needed=needs.git)
    yield machine.disk()
    yield machine.memory()
    yield machine.ports_for_servers()
    if settings.port:
        yield machine.port(settings.host, settings.port)
    with engine.asked(is_needed=needs.engine) as (found, client):
        yield found
        if client is not None:
            yield from engine.look(client, needs.images)
            yield from stale.containers(client, reap=reap)
            yield from stale.services(client, reap=reap)
    yield from stale.clones(reap=reap)
    for environment in settings.environments:
        yield _tried(environment)


def _tried(environment: EnvironmentSettings) -> Finding:
    if not sys.stderr.isatty():
        return try_launch(environment)
    from rich.console import Console  # noqa: PLC0415  (only a terminal needs it, and it takes its time to import)

    with Console(stderr=True).status(f"Launching {environment.name} ({environment.source}) …"):
        return try_launch(environment)


def _told(findings: Iterable[Finding], as_json: bool) -> Sequence[Finding]:
    """All of them; for people each as soon as it is there."""
    told = []
    for finding in findings:
        told.append(finding)
        if not as_json:
            _show(finding)
    return told


def _show(finding: Finding) -> None:
    status = click.style(f"{finding.status.value:<7}", fg=STYLES[finding.status])
    first, *rest = finding.said.splitlines()
    click.echo(f"{status} {click.style(finding.check, bold=True)}: {first}")
    for line in rest:
        click.echo(f"        {line}")
    if finding.remedy:
        click.echo(f"        → {finding.remedy}")


def _has_failed(findings: Iterable[Finding]) -> bool:
    return any(finding.status is Status.FAILED for finding in findings)


@contextmanager
def _ended_like_ctrl_c() -> Iterator[None]:
    """SIGTERM unwinds as Ctrl-C does, so that a launch that is being tried is stopped."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
