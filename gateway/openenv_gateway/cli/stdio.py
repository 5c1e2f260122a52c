"""`stdio`: the gateway as a stdio MCP server, for hosts that launch a command."""

from __future__ import annotations

import asyncio
import signal
import sys

import click

from openenv_gateway.cli.options import configure_logging, exposure_option, make_settings
from openenv_gateway.mapping.options import Exposure
from openenv_gateway.settings import GatewaySettings
from openenv_gateway.transports.gateway import Gateway
from openenv_gateway.transports.stdio import StdioServer, claim_stdout


@click.command()
@click.argument("spec", metavar="SPEC")
@exposure_option
@click.pass_obj
def stdio(debug: bool, spec: str, exposure: Exposure | None) -> None:
    """Serve one environment over stdin and stdout."""
    settings = make_settings([spec], exposure=exposure)
    configure_logging(debug=debug)
    asyncio.run(_serve(settings))


async def _serve(settings: GatewaySettings) -> None:
    stdout = claim_stdout()
    async with Gateway(settings) as gateway:
        endpoint = next(iter(gateway.endpoints.values()))
        server = StdioServer(endpoint, sys.stdin.buffer, stdout)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, server.stop)
        await server.serve()
