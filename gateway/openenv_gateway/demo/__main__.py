"""`python -m openenv_gateway.demo --port N [--host 127.0.0.1] [--max-sessions 64]`.

Prints nothing on stdout, unless DEMO_CHATTER=1 (a line per reset and step, for a test that a noisy server cannot disturb a
stdio gateway). With `--port 0` any free port is taken and the URL is printed on stderr. SIGTERM and SIGINT end it, exit 0.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import sys

from openenv_gateway.demo.server import bound_port, start


async def run(host: str, port: int, max_sessions: int, chatter: bool) -> None:
    """Serve until SIGTERM or SIGINT. Raises OSError if the port cannot be had."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(NotImplementedError):  # Windows has no loop signals: there KeyboardInterrupt ends the run
            loop.add_signal_handler(number, stopped.set)
    async with await start(host, port, max_sessions=max_sessions, say=_say if chatter else None) as server:
        if port == 0:
            print(f"demo environment at http://{host}:{bound_port(server)}", file=sys.stderr, flush=True)
        await stopped.wait()


def _say(line: str) -> None:
    print(line, flush=True)


def main() -> int:
    """The exit status: 0 after a signal, 1 if the port cannot be had; argparse exits with 2 on wrong usage."""
    parser = argparse.ArgumentParser(prog="python -m openenv_gateway.demo", description="A small OpenEnv environment server.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes any free port and prints the URL on stderr")
    parser.add_argument("--max-sessions", type=int, default=64)
    given = parser.parse_args()
    try:
        asyncio.run(run(given.host, given.port, given.max_sessions, os.environ.get("DEMO_CHATTER") == "1"))
    except OSError as error:
        print(f"The demo cannot listen on {given.host}:{given.port}: {error}. Choose another --port.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
