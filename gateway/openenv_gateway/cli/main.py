"""The command group, and the one place that turns an exception into an exit code and a text for a person."""

from __future__ import annotations

import importlib
import json
import sys
import traceback
from collections.abc import Sequence

import click

from openenv_client.errors import OpenEnvError
from openenv_gateway import __version__
from openenv_gateway.errors import ConfigError, GatewayError

COMMANDS = {
    "serve": "openenv_gateway.cli.serve:serve",
    "stdio": "openenv_gateway.cli.stdio:stdio",
    "tools": "openenv_gateway.cli.inspect:tools",
    "call": "openenv_gateway.cli.inspect:call",
    "config": "openenv_gateway.cli.hosts:config",
    "validate": "openenv_gateway.cli.hosts:validate",
    "doctor": "openenv_gateway.cli.doctor:doctor",
}


class _LazyGroup(click.Group):
    """Imports a command's module when it is needed: a stdio server must answer fast and needs no HTTP server for it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="openenv-gateway")
@click.option("--debug", is_flag=True, help="Show tracebacks and detailed logs.")
@click.pass_context
def cli(context: click.Context, debug: bool) -> None:
    """Let any MCP host play any OpenEnv environment.

    \b
    SPEC is [name=]source[?option=value&...], where source is one of
      demo                         a small game that ships with the gateway
      http://HOST:PORT             an environment server that runs already
      cmd:COMMAND with {port}      a command that starts a server
      uv:PATH, uv:git+URL          an environment's project folder or repository, run by uv
    """
    context.obj = debug


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point. Exit codes: 0 fine, 1 failure, 2 usage (also a SPEC or option that makes no sense)."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    as_json, debug = "--json" in arguments, "--debug" in arguments
    try:
        code = cli.main(args=arguments, prog_name="openenv-gateway", standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except click.ClickException as error:
        if as_json:
            report_json("USAGE", error.format_message(), "openenv-gateway --help")
        else:
            error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except (OpenEnvError, GatewayError) as error:
        report(error, debug=debug, as_json=as_json)
        sys.exit(2 if isinstance(error, ConfigError) else 1)
    except BaseExceptionGroup as group:
        first = _first(group)
        if not isinstance(first, (OpenEnvError, GatewayError)):
            raise
        report(first, debug=debug, as_json=as_json)
        sys.exit(1)


def report(error: OpenEnvError | GatewayError, *, debug: bool = False, as_json: bool = False) -> None:
    """What happened and why, then what to do next, on stderr."""
    if debug:
        traceback.print_exception(error)
    message = " ".join([str(error), *getattr(error, "__notes__", ())])
    if as_json:
        report_json(error.code, message, error.next_step)
        return
    click.echo(f"Error: {message}", err=True)
    click.echo(f"Next:  {error.next_step}", err=True)


def report_json(code: str, message: str, next_step: str) -> None:
    """The same as one JSON line, for commands that are asked for JSON."""
    line = {"event": "error", "code": code, "message": message, "next_step": next_step}
    click.echo(json.dumps(line, ensure_ascii=False), err=True)


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error
