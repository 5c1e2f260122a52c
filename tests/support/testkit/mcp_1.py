"""The official `mcp` 1.30 client: it needs a virtual environment of its own, so tests/real/clients/mcp1.py drives it there.

Its processes are kept for the next client, since one takes seconds to start: `end_idle` when the tests are over.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from testkit import venvs

ANSWER_TIMEOUT_S: Final = 60.0
END_TIMEOUT_S: Final = 10.0
_SCRIPT: Final = Path(__file__).parents[2] / "real" / "clients" / "mcp1.py"
_idle: list[subprocess.Popen[str]] = []


class Refused(Exception):
    """A JSON-RPC error instead of a result."""

    def __init__(self, code: int, message: str, data: Any) -> None:
        super().__init__(f"{code}: {message}")
        self.code, self.message, self.data = code, message, data


class Mcp1:
    """A client that is connected. Results are as on the wire."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    async def list_tools(self) -> list[dict[str, Any]]:
        tools: list[dict[str, Any]] = await self.ask("list")
        return tools

    async def call_tool(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        result: dict[str, Any] = await self.ask("call", tool=tool, arguments=dict(arguments))
        return result

    async def ask(self, do: str, **more: Any) -> Any:
        """The result of one command. Raises Refused; TimeoutError when there is no answer in time."""
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            line = await asyncio.to_thread(self._exchange, json.dumps({"do": do, **more}))
        assert line, f"the mcp 1 client ended with {self._process.wait(END_TIMEOUT_S)}; its traceback is on stderr"
        answer = json.loads(line)
        if "error" in answer:
            raise Refused(answer["error"]["code"], answer["error"]["message"], answer["error"].get("data"))
        return answer["result"]

    def _exchange(self, line: str) -> str:
        assert self._process.stdin is not None and self._process.stdout is not None
        print(line, file=self._process.stdin, flush=True)
        return self._process.stdout.readline()


@asynccontextmanager
async def connected(target: Mapping[str, Any]) -> AsyncIterator[tuple[Mcp1, str]]:
    """A client of `target` (see the script) and the revision that it speaks, closed at the end as its users close it."""
    process = await asyncio.to_thread(_taken)
    client = Mcp1(process)
    try:
        yield client, await client.ask("open", **target)
        assert await client.ask("close") == "closed"
    except BaseException:
        await asyncio.to_thread(_end, process, kill=True)
        raise
    _idle.append(process)


def end_idle() -> None:
    """End the processes that wait for another client."""
    while _idle:
        _end(_idle.pop())


def _taken() -> subprocess.Popen[str]:
    if _idle:
        return _idle.pop()
    command = [str(venvs.known(venvs.MCP_1)), str(_SCRIPT)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _end(process: subprocess.Popen[str], *, kill: bool = False) -> None:
    assert process.stdin is not None and process.stdout is not None
    if kill:
        process.kill()
    process.stdin.close()
    process.wait(END_TIMEOUT_S)
    process.stdout.close()
