"""`config` and `validate`: text to paste into a host, and all faults of a configuration file."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from openenv_gateway.cli.options import make_settings, token_option
from openenv_gateway.cli.targets import is_mcp_url, refuse_gateway
from openenv_gateway.config.file import load_config
from openenv_gateway.config.spec import portable_spec, unsupported
from openenv_gateway.errors import ConfigError
from openenv_gateway.hosts.blocks import HOSTS, PLACES, Host, Opening, block
from openenv_gateway.transports.token_file import read_tokens


@click.command()
@click.argument("host", type=click.Choice(HOSTS))
@click.argument("target", metavar="[SPEC|URL]", default="http://127.0.0.1:8700/mcp")
@click.option("--name", help="The name under which the host lists it; by default the environment's.")
@token_option
def config(host: Host, target: str, name: str | None, token_env: str | None) -> None:
    """Print the block to paste into a host's configuration.

    With a URL (of a gateway that runs, ending in /mcp) the host connects to it; with a SPEC it launches the gateway itself.
    """
    if is_mcp_url(target):
        _print(host, block(host, name or _name_in(target), url=target, token_variable=token_env))
        return
    if token_env is not None:
        raise click.UsageError("--token-env goes with the URL of a gateway: one that the host launches itself wants no token.")
    refuse_gateway(target)
    (environment,) = make_settings([target]).environments
    command = [_executable(), "stdio", portable_spec(target)]  # hosts start it in a folder of their own
    opening: Opening = "observe" if environment.mapping.exposure == "agent" else "reset"
    _print(host, block(host, name or environment.name, command=command, opening=opening))


def _print(host: Host, text: str) -> None:
    click.echo(f"{PLACES[host]}:", err=True)
    click.echo(text)


def _name_in(url: str) -> str:
    parts = [part for part in url.partition("?")[0].split("/") if part]
    return parts[-2] if len(parts) > 3 else "openenv"


def _executable() -> str:
    """The absolute path of this program: hosts that launch it do not have the shell's PATH."""
    return str(Path(sys.argv[0]).resolve()) if Path(sys.argv[0]).exists() else "openenv-gateway"


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
def validate(file: Path) -> None:
    """Report all faults of a configuration file at once, each with its line."""
    try:
        settings = load_config(file)
        if settings.token_file is not None:
            read_tokens(settings.token_file)
    except ConfigError as error:
        click.echo(str(error), err=True)
        sys.exit(1)
    names = ", ".join(environment.name for environment in settings.environments) or "none"
    click.echo(f"{file} is valid. Environments: {names}")
    if later := [reason for environment in settings.environments if (reason := unsupported(environment)) is not None]:
        click.echo("\n".join(["serve refuses it all the same:", *later]), err=True)
        sys.exit(1)
