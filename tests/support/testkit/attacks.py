"""Requests that would like to choose what is launched: on every route, with the words that launchers use, in every place."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlencode

import httpx
from hypothesis import strategies as st
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from testkit.http_agent import META, MODERN

SIGN: Final = "CHOSEN-BY-A-REQUEST"
Values = dict[str, Any]

KEYS: Final = (
    "image", "command", "cmd", "args", "argv", "arguments", "entrypoint", "env", "env_vars", "environment", "envVars",
    "volumes", "mounts", "binds", "cwd", "working_dir", "source", "spec", "target", "kind", "provider", "provider_kwargs",
    "project_path", "app", "port", "host", "workers", "network", "user", "memory", "cpus", "pids", "privileged", "read_only",
    "container_port", "max_servers",
    "launch_timeout_s", "base_url", "url", "config", "start", "stop", "reset", "options", "name", "__class__",
)  # fmt: skip
POISON: Final = (
    f"{SIGN}:latest", f"docker:{SIGN}", f"cmd:touch {SIGN} {{port}}", f"; touch {SIGN}", f"$(touch {SIGN})", f"`touch {SIGN}`",
    f"/{SIGN}", f"../../{SIGN}", f"--{SIGN}", "{port}", f"http://127.0.0.1:1/{SIGN}", f"py:{SIGN}:Provider",
)  # fmt: skip

texts = st.sampled_from(POISON)
values = st.one_of(
    texts,
    st.lists(texts, max_size=2),
    st.dictionaries(st.sampled_from([SIGN, "LD_PRELOAD", "PATH", "PYTHONPATH", "PORT", "/host"]), texts, min_size=1),
    st.integers(0, 70000),
    st.booleans(),
)
payloads = st.dictionaries(st.sampled_from(KEYS), values, min_size=1, max_size=6)

METHODS: Final = (
    "initialize", "ping", "server/discover", "tools/list", "tools/call", "resources/list", "resources/read", "prompts/list",
    "prompts/get", "completion/complete", "logging/setLevel", "subscriptions/listen", "notifications/initialized",
    "notifications/cancelled", "openenv/session/create", "openenv/session/close", "environment/launch",
    "reset", "step", "launch",
)  # fmt: skip
TOOLS: Final = ("reset", "step", "state", "observe", "launch")
FRAMES: Final = ("reset", "step", "state", "mcp", "launch")
PATHS: Final = (
    "/health", "/ready", "/schema", "/metadata", "/state", "/launch", "/envs", "/envs/other/mcp", f"/envs/{SIGN}/reset",
    "/schemas/config.schema.json",
)  # fmt: skip

Attack = Callable[[httpx.Client, str], object]
"""Given a client of the gateway and a name for a session that nobody has used."""


def _rpc(method: str, params: Values) -> Values:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def _tool(name: str, arguments: Values) -> Values:
    return _rpc("tools/call", {"name": name, "arguments": arguments})


def _query(payload: Values) -> str:
    return urlencode({key: json.dumps(value) for key, value in payload.items()})


def call(tool: str, payload: Values, inside: bool) -> Attack:
    """A tool's call, with the payload as its arguments or around them."""
    params = {"name": tool, "arguments": payload} if inside else {**payload, "name": tool, "arguments": {}, "_meta": payload}
    return lambda http, name: http.post(f"/mcp?session={name}", json=_rpc("tools/call", params))


def method(name_of_it: str, payload: Values) -> Attack:
    """Any method of MCP and of OpenEnv's JSON-RPC, in the handshake era."""
    return lambda http, name: http.post(f"/mcp?session={name}", json=_rpc(name_of_it, payload))


def created(payload: Values) -> Attack:
    """OpenEnv's own session, and a call in it."""

    def run(http: httpx.Client, name: str) -> object:
        answer = http.post("/mcp", json=_rpc("openenv/session/create", payload)).json()
        session = answer.get("result", {}).get("session_id", name)
        return http.post("/mcp", json=_rpc("tools/call", {"name": "reset", "arguments": payload, "session_id": session}))

    return run


def modern(tool: str, payload: Values) -> Attack:
    """A call of revision 2026-07-28, with the payload in its `_meta` and mirrored into headers."""
    params = {"name": tool, "arguments": {}, "_meta": {**payload, **META}}
    headers = {"mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": tool, **_headers("Mcp-Param-", payload)}
    headers["accept"] = "application/json, text/event-stream"
    return lambda http, name: http.post(f"/mcp?session={name}", json=_rpc("tools/call", params), headers=headers)


def in_the_query(payload: Values) -> Attack:
    """A plain reset, with the payload in the URL."""
    body = _rpc("tools/call", {"name": "reset", "arguments": {}})
    return lambda http, name: http.post(f"/mcp?{_query(payload)}&session={name}", json=body)


def in_headers(payload: Values) -> Attack:
    """A plain reset, with the payload in headers and cookies."""
    body = _rpc("tools/call", {"name": "reset", "arguments": {}})
    headers = {**_headers("X-", payload), **_headers("X-OpenEnv-", payload), "cookie": f"openenv_session={SIGN}"}
    return lambda http, name: http.post(f"/mcp?session={name}", json=body, headers=headers)


def on_http(path: str, payload: Values) -> Attack:
    """OpenEnv's HTTP routes that control the simulation."""
    body = {"action": {"cell": 5, **payload}, **payload} if path == "/step" else payload
    return lambda http, name: http.post(f"{path}?{_query(payload)}", json=body)


def on_pages(path: str, payload: Values) -> Attack:
    """Pages that are only read, and paths that do not exist."""
    return lambda http, name: http.get(f"{path}?{_query(payload)}")


def on_socket(path: str, first: Values, payload: Values) -> Attack:
    """One message on a WebSocket, opened with the payload in its URL and headers; its answer is waited for."""

    def run(http: httpx.Client, name: str) -> None:
        url = f"{str(http.base_url).rstrip('/').replace('http', 'ws', 1)}{path}?{_query(payload)}"
        try:
            with connect(url, additional_headers=_headers("X-", payload), proxy=None, close_timeout=1) as socket:
                socket.send(json.dumps(first))
                socket.recv(timeout=5)
        except (WebSocketException, TimeoutError):
            return  # refused, or not answered: what is launched is all that counts here

    return run


def _headers(prefix: str, payload: Values) -> Values:
    return {f"{prefix}{key.replace('_', '-').strip('-')}": json.dumps(value) for key, value in payload.items()}


attacks: st.SearchStrategy[Attack] = st.one_of(
    st.builds(call, st.sampled_from(TOOLS), payloads, st.booleans()),
    st.builds(method, st.sampled_from(METHODS), payloads),
    st.builds(created, payloads),
    st.builds(modern, st.sampled_from(TOOLS), payloads),
    st.builds(in_the_query, payloads),
    st.builds(in_headers, payloads),
    st.builds(on_http, st.sampled_from(["/reset", "/step"]), payloads),
    st.builds(on_pages, st.sampled_from(PATHS), payloads),
    st.builds(lambda name, it: on_socket("/mcp", _rpc(name, it), it), st.sampled_from(METHODS), payloads),
    st.builds(lambda tool, it: on_socket("/mcp", _tool(tool, it), it), st.sampled_from(TOOLS), payloads),
    st.builds(lambda kind, it: on_socket("/ws", {"type": kind, "data": it}, it), st.sampled_from(FRAMES), payloads),
    st.builds(lambda kind, it: on_socket("/ws", {"type": kind, "data": {}, **it}, it), st.sampled_from(FRAMES), payloads),
)
