"""A host that speaks to `openenv-gateway stdio` line by line, so that a test sees all of its stdout and owns its life.

    with StdioHost("demo", mark) as host:
        host.open()
        host.call("reset", seed=1)
"""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from testkit.commands import GATEWAY
from testkit.servers import small_environment

ANSWER_TIMEOUT_S: Final = 60.0
HELLO: Final = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


class StdioHost:
    """One gateway process with its pipes. `stderr` is a file, readable at any time with `log`."""

    def __init__(self, spec: str, env: Mapping[str, str], folder: Path) -> None:
        self._log = folder / "stderr.txt"
        with self._log.open("w") as stderr:
            self.process = subprocess.Popen(
                [*GATEWAY, "stdio", spec],
                env=small_environment(env),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, name="stdout of the gateway", daemon=True)
        self._reader.start()
        self._id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.process.kill()
        self.process.wait(10)
        self._reader.join(10)
        assert self.process.stdin is not None
        self.process.stdin.close()

    def open(self) -> dict[str, Any]:
        """The handshake; the result of initialize."""
        answer = self.ask("initialize", HELLO)
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """The result of one tools/call."""
        return self.ask("tools/call", {"name": tool, "arguments": arguments})

    def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The result of one request. Raises queue.Empty if no line comes in time, AssertionError if it is anything else."""
        identity = self.send(method, params)
        line = self._lines.get(timeout=ANSWER_TIMEOUT_S)
        message = json.loads(line)
        assert message.get("id") == identity and "result" in message, line
        result: dict[str, Any] = message["result"]
        return result

    def send(self, method: str, params: Mapping[str, Any]) -> int:
        """Send a request and wait for nothing; its id."""
        self._id += 1
        self.write({"jsonrpc": "2.0", "id": self._id, "method": method, "params": dict(params)})
        return self._id

    def write(self, message: Mapping[str, Any]) -> None:
        self.write_line(json.dumps(message))

    def write_line(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def end_of_file(self) -> None:
        """What a host does when it is done."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def unread(self) -> list[str]:
        """Whatever else is on stdout, to its end; call it when the process has ended."""
        self._reader.join(10)
        return [self._lines.get_nowait() for _ in range(self._lines.qsize())]

    def log(self) -> str:
        """Its stderr so far."""
        return self._log.read_text()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self._lines.put(line)
