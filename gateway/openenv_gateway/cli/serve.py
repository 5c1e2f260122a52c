"""`serve`: the gateway over HTTP, from binding its port to leaving nothing behind."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import importlib
import json
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import click
import uvicorn

from openenv_client.dialing import keep_alive
from openenv_client.providers.launched import is_every_interface, reachable_url
from openenv_gateway.cli import memory
from openenv_gateway.cli.options import config_option, configure_logging, exposure_option, make_settings
from openenv_gateway.cli.progress import starting
from openenv_gateway.errors import GatewayError
from openenv_gateway.hosts.blocks import TOKEN_VARIABLE, block
from openenv_gateway.mapping.options import Exposure
from openenv_gateway.settings import GatewaySettings
from openenv_gateway.transports.app import build_app
from openenv_gateway.transports.front import FrontProtocol
from openenv_gateway.transports.gateway import Gateway
from openenv_gateway.transports.guards import is_loopback


class StartFailed(GatewayError):
    """The gateway could not start; nothing was left running."""

    code = "START_FAILED"


@click.command()
@click.argument("specs", metavar="SPEC", nargs=-1)
@click.option("--host", help="Address to listen on.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), help="Port to listen on; 0 is any free one.  [default: 8700]")
@click.option(
    "--token-file", type=click.Path(path_type=Path), help="Who may call: a line SCOPE NAME TOKEN each, SCOPE agent or operator."
)
@click.option("--unprotected", is_flag=True, help="Allow a --host beyond loopback although nobody has to authenticate.")
@click.option("--json", "as_json", is_flag=True, help="Banner and log as JSON lines.")
@config_option
@exposure_option
@click.pass_obj
def serve(
    debug: bool,
    specs: tuple[str, ...],
    host: str | None,
    port: int | None,
    token_file: Path | None,
    unprotected: bool,
    as_json: bool,
    config_file: Path | None,
    exposure: Exposure | None,
) -> None:
    """Serve environments to MCP hosts over HTTP."""
    settings = make_settings(
        specs, config_file=config_file, host=host, port=port, token_file=token_file, exposure=exposure
    )
    if settings.token_file is None and not unprotected and not is_loopback(settings.host):
        raise click.UsageError(
            f"--host {settings.host} is reachable from other machines and nobody has to authenticate. Say who may call with "
            "--token-file FILE, listen on 127.0.0.1, or say --unprotected if the network itself is protected."
        )
    configure_logging(debug=debug, as_json=as_json)
    listener = listen(settings.host, settings.port)
    with listener:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(_serve(settings, listener, as_json))


def new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop's where it is installed (the extra `fast`), else asyncio's own: they differ in speed alone."""
    try:
        uvloop = importlib.import_module("uvloop")
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def listen(host: str, port: int) -> socket.socket:
    """Bind first: a port in use must fail before any server is launched."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sets TCP_NODELAY only on sockets that say that they are TCP; without it each answer waits for a delayed ACK.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Accepted connections inherit it: a WebSocket whose host has vanished ends, and with it its lane, after 90 s.
        keep_alive(listener, idle_s=30, interval_s=10, probes=6)
        listener.bind((host, port))
        listener.listen(1024)
    except OSError as error:
        listener.close()
        advice = (
            "Stop what uses the port, or choose another with --port (0 takes any free one)."
            if error.errno == errno.EADDRINUSE
            else "Name an address of this machine with --host, and a port that you may use with --port."
        )
        raise StartFailed(f"Cannot listen on {host}:{port}: {error.strerror or error}", next_step=advice) from error
    return listener


def http_config(gateway: Gateway) -> uvicorn.Config:
    """How uvicorn serves a gateway. Raises BadTokenFile.

    WebSockets: no pings, since a client that is busy for a while must not lose its episode; no compression, which costs more
    than it saves where a message is sent once and read at once.
    """
    return uvicorn.Config(
        build_app(gateway),
        log_config=None,
        access_log=False,
        http=FrontProtocol,
        lifespan="off",
        server_header=False,
        proxy_headers=False,  # nothing here asks for the address that a proxy forwards
        timeout_graceful_shutdown=2,
        ws="websockets-sansio",
        ws_max_size=gateway.settings.max_body_bytes,
        ws_ping_interval=None,
        ws_per_message_deflate=False,
    )


class HttpServer(uvicorn.Server):
    """uvicorn without its signal handling: a signal here first drains the gateway."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Stop:
    """What signals do: the first drains and stops, the second stops at once."""

    def __init__(self, gateway: Gateway, server: HttpServer, *, as_json: bool) -> None:
        self._gateway, self._server, self._as_json = gateway, server, as_json
        self._drain_timeout_s = gateway.settings.drain_timeout_s
        self._starting: asyncio.Task[None] | None = None
        self._draining: asyncio.Task[None] | None = None

    async def start(self) -> bool:
        """Ask every environment for its tools. Returns False when a signal came first."""
        self._starting = asyncio.create_task(self._gateway.describe())
        try:
            async with starting(self._gateway.settings.environments, as_json=self._as_json):
                await self._starting
        except asyncio.CancelledError:
            if not self._gateway.draining:
                raise
            return False
        finally:
            self._starting = None
        return True

    def on_signal(self) -> None:
        if self._gateway.draining:
            self._server.force_exit = self._server.should_exit = True
            if self._draining is not None:
                self._draining.cancel()
            return
        self._gateway.drain()
        if busy := self._gateway.busy:
            self._say_stopping(busy)
        if self._starting is not None:
            self._starting.cancel()
        self._draining = asyncio.create_task(self._drain())

    def _say_stopping(self, busy: int) -> None:
        seconds = self._drain_timeout_s
        if self._as_json:
            click.echo(json.dumps({"event": "stopping", "calls": busy, "seconds": seconds}), err=True)
            return
        calls = "1 call" if busy == 1 else f"{busy} calls"
        click.echo(f"Stopping: waiting up to {seconds:g} s for {calls}; a second signal stops at once.", err=True)

    async def _drain(self) -> None:
        await self._gateway.stop_calls(self._drain_timeout_s)
        self._gateway.end_streams()
        self._server.should_exit = True


async def _serve(settings: GatewaySettings, listener: socket.socket, as_json: bool) -> None:
    async with Gateway(settings) as gateway:
        server = HttpServer(http_config(gateway))
        stop = _Stop(gateway, server, as_json=as_json)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.on_signal)
        if await stop.start():
            memory.settle()
            _banner(gateway, listener.getsockname()[1], as_json)
            await server.serve(sockets=[listener])


def _banner(gateway: Gateway, port: int, as_json: bool) -> None:
    base = reachable_url(gateway.settings.host, port)
    shown = list(gateway.endpoints.values())[:6]
    if as_json:
        for endpoint in gateway.endpoints.values():
            settings = endpoint.environment.settings
            line = {"environment": settings.name, "source": str(settings.source), "url": f"{base}/envs/{settings.name}/mcp"}
            click.echo(json.dumps({"event": "serving", **line, "exposure": settings.mapping.exposure}), err=True)
        return
    for endpoint in shown:
        settings = endpoint.environment.settings
        url = f"{base}/envs/{settings.name}/mcp"
        click.echo(f"{settings.name}  {settings.source}  {url}  exposure {settings.mapping.exposure}", err=True)
    if len(gateway.endpoints) > len(shown):
        click.echo(f"… and {len(gateway.endpoints) - len(shown)} more under {base}/envs/", err=True)
    first = shown[0].environment.name
    url = f"{base}/envs/{first}/mcp"
    token_variable = None if gateway.settings.token_file is None else TOKEN_VARIABLE
    option = f" --token-env {token_variable}" if token_variable else ""
    click.echo(f"Paste:  {block('claude-code', first[:64], url=url, token_variable=token_variable)}", err=True)
    if is_every_interface(gateway.settings.host):
        others = "with an address of this machine in the URL; a name must be in allowed_hosts"
        click.echo(f"Other machines reach it {others}.", err=True)
    click.echo(f"More:   openenv-gateway config HOST {url}{option}    Stop: Ctrl-C", err=True)
