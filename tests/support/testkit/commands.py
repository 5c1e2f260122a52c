"""The command line as a process, for tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

GATEWAY = [str(Path(sys.executable).with_name("openenv-gateway"))]


def run(*arguments: str, mark: dict[str, str] | None = None, timeout_s: float = 30) -> subprocess.CompletedProcess[str]:
    """A command that ends by itself."""
    environment = {**os.environ, **(mark or {})}
    return subprocess.run([*GATEWAY, *arguments], capture_output=True, text=True, env=environment, timeout=timeout_s)


@contextmanager
def serving(*arguments: str, mark: dict[str, str]) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A gateway process and the URL of its first environment, from its banner."""
    command = [*GATEWAY, "serve", *arguments, "--port", "0", "--json"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **mark}) as process:
        try:
            assert process.stderr is not None
            banner = next(line for line in map(json.loads, process.stderr) if line["event"] == "serving")
            yield process, banner["url"]
        finally:
            process.kill()


def post(url: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    with urlopen(Request(url, body, {"Content-Type": "application/json"}), timeout=10) as answer:
        result: dict[str, Any] = json.load(answer)["result"]
        return result


def get(url: str) -> tuple[int, Any]:
    with urlopen(url, timeout=10) as answer:
        return answer.status, json.load(answer)
