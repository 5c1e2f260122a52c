"""What several commands share: options, and settings made from them."""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from openenv_gateway.config.file import from_specs, load_config
from openenv_gateway.config.spec import require_supported
from openenv_gateway.mapping.options import Exposure
from openenv_gateway.settings import GatewaySettings

BEARER = re.compile(r"\b(bearer\s+)[^\s\"',]+", re.IGNORECASE)

exposure_option = click.option(
    "--exposure",
    type=click.Choice(["full", "agent"]),
    help="full: agents may reset and read the state; agent: neither (OpenEnv's rule for trained agents).",
)
config_option = click.option(
    "--config", "config_file", type=click.Path(path_type=Path), help="A TOML file with the same settings and more."
)
token_option = click.option(
    "--token-env", metavar="VARIABLE", help="The gateway at the URL wants a token: the environment variable that holds it."
)


def token_in(variable: str | None) -> str | None:
    """The token in an environment variable, None where none is asked for. Raises UsageError when the variable is not set."""
    if variable is None:
        return None
    token = os.environ.get(variable, "").strip()
    if not token:
        raise click.UsageError(f"The environment variable {variable} of --token-env is not set: export {variable}=TOKEN first.")
    return token


def make_settings(
    specs: Sequence[str],
    *,
    config_file: Path | None = None,
    host: str | None = None,
    port: int | None = None,
    token_file: Path | None = None,
    exposure: Exposure | None = None,
) -> GatewaySettings:
    """Checked settings from the command line and the file. Raises ConfigError with every fault; starts nothing."""
    base = load_config(config_file) if config_file is not None else None
    settings = from_specs(specs, base=base, host=host, port=port, token_file=token_file, exposure=exposure)
    require_supported(settings)
    return settings


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {"time": self.formatTime(record), "level": record.levelname, "logger": record.name}
        line["message"] = record.getMessage()
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


class _NoTokens(logging.Filter):
    """Libraries log the headers of a WebSocket's request in debug mode: nobody may read a token there."""

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        masked = BEARER.sub(r"\1***", message)
        if masked != message:
            record.msg, record.args = masked, ()
        return True


def configure_logging(*, debug: bool, as_json: bool = False) -> None:
    """Logs go to stderr: stdout belongs to JSON-RPC in stdio mode, and to results elsewhere."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines() if as_json else logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    handler.addFilter(_NoTokens())
    logging.basicConfig(level=logging.DEBUG if debug else logging.WARNING, handlers=[handler], force=True)
