"""The text to paste into an MCP host, or to run, so that it plays an environment of this gateway. Pure.

A host reaches the gateway by the URL of one environment (`openenv-gateway serve`), or launches it as a command
(`openenv-gateway stdio SPEC`). The forms are those of the hosts' own documentation as of November 2026.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, get_args

from openenv_gateway.errors import ConfigError
from openenv_gateway.hosts.scripts import CURL, PYTHON, PYTHON_TOKEN

Host = Literal["claude-code", "claude-desktop", "cursor", "vscode", "codex", "curl", "python"]
Opening = Literal["reset", "observe"]

HOSTS: tuple[Host, ...] = get_args(Host)
PLACES: Mapping[Host, str] = MappingProxyType({
    "claude-code": "Run in a shell, in the folder of your project",
    "claude-desktop": "Paste into claude_desktop_config.json (Settings, Developer, Edit Config), then restart Claude Desktop",
    "cursor": "Paste into .cursor/mcp.json in your project, or ~/.cursor/mcp.json for all projects",
    "vscode": "Paste into .vscode/mcp.json in your project",
    "codex": "Paste into ~/.codex/config.toml",
    "curl": "Run in a shell",
    "python": "Save as play.py and run it: pip install 'mcp>=2.3' && python play.py",
})
"""Where each block goes."""

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
TOKEN_VARIABLE = "OPENENV_GATEWAY_TOKEN"
"""The environment variable that holds a user's token, where nothing else was agreed."""


@dataclass(frozen=True, slots=True)
class Way:
    """How a host gets to the environment: by `url`, with the token in the environment variable `token_variable` if one is
    wanted; or else by launching `command`."""

    name: str
    url: str | None
    command: tuple[str, ...]
    opening: Opening
    token_variable: str | None = None

    @property
    def launch(self) -> dict[str, Any]:
        """The command as most hosts write it."""
        return {"command": self.command[0], "args": list(self.command[1:])}

    def headers(self, placeholder: str) -> dict[str, Any]:
        """The headers that carry the token, as most hosts write them. `placeholder` is what the host replaces by it."""
        return {} if self.token_variable is None else {"headers": {"Authorization": f"Bearer {placeholder}"}}


def block(
    host: str,
    name: str,
    *,
    url: str | None = None,
    command: Sequence[str] | None = None,
    opening: Opening = "reset",
    token_variable: str | None = None,
) -> str:
    """The text for one of HOSTS, without a line break at its end. PLACES says where it goes.

    `name` is what the host will call the server; exactly one of `url` (the environment's MCP URL) and `command` is given.
    `opening` is the tool with which a session starts: "observe" where exposure "agent" leaves no reset. `token_variable` is
    the environment variable of the host's user that holds the token for the URL: the block refers to it, and never has the
    token itself. Raises ConfigError for what the host cannot do, with the way that works.
    """
    if host not in BLOCKS:
        raise _impossible(host, f'unknown host "{host}"; known are {", ".join(HOSTS)}')
    if (url is None) == (not command):
        raise _impossible(host, "needs either the URL of a served environment or a command to launch, not both")
    if not NAME.fullmatch(name):
        raise _impossible(host, f'the name "{name}" must be 1 to 64 letters, digits, underscores and hyphens, no hyphen first')
    if token_variable is not None and (url is None or not VARIABLE.fullmatch(token_variable)):
        raise _impossible(host, "a token goes with a URL and stands in an environment variable: letters, digits, underscores")
    return BLOCKS[host](Way(name, url, tuple(command or ()), opening, token_variable)).rstrip("\n")


def _claude_code(way: Way) -> str:
    if way.url is not None and way.token_variable is not None:  # in .mcp.json, where placeholders are replaced
        header = f"Authorization: Bearer ${{{way.token_variable}}}"
        start = ["claude", "mcp", "add", "--scope", "project", "--transport", "http"]
        return shlex.join([*start, way.name, way.url, "--header", header])
    if way.url is not None:
        return shlex.join(["claude", "mcp", "add", "--transport", "http", way.name, way.url])
    return shlex.join(["claude", "mcp", "add", way.name, "--", *way.command])


def _claude_desktop(way: Way) -> str:
    if way.url is not None:
        raise _impossible(
            "claude-desktop",
            "its configuration file takes commands only, no URLs: use openenv-gateway config claude-desktop SPEC, "
            "and it will launch the gateway itself",
        )
    return _json({"mcpServers": {way.name: way.launch}})


def _cursor(way: Way) -> str:
    entry = {"url": way.url, **way.headers(f"${{env:{way.token_variable}}}")} if way.url is not None else way.launch
    return _json({"mcpServers": {way.name: entry}})


def _vscode(way: Way) -> str:
    if way.url is None:
        return _json({"servers": {way.name: {"type": "stdio", **way.launch}}})
    entry = {"type": "http", "url": way.url, **way.headers(f"${{input:{way.name}-token}}")}
    if way.token_variable is None:
        return _json({"servers": {way.name: entry}})
    # VS Code asks for the token once and keeps it: an editor started from a desktop has no variables of a shell.
    ask = {"type": "promptString", "id": f"{way.name}-token", "description": f"Token for {way.name}", "password": True}
    return _json({"inputs": [ask], "servers": {way.name: entry}})


def _codex(way: Way) -> str:
    if way.url is not None:
        entries = [f"url = {_toml(way.url)}"]
        if way.token_variable is not None:
            entries.append(f"bearer_token_env_var = {_toml(way.token_variable)}")
    else:
        arguments = ", ".join(map(_toml, way.command[1:]))
        entries = [f"command = {_toml(way.command[0])}", f"args = [{arguments}]"]
    return "\n".join([f"[mcp_servers.{way.name}]", *entries])


def _curl(way: Way) -> str:
    if way.url is None:
        raise _impossible("curl", "speaks HTTP only: serve the environment (openenv-gateway serve SPEC) and give its URL")
    named = f"{way.url}{'&' if '?' in way.url else '?'}session=me"
    # Double quotes: the shell puts the token in. In front of the URL, so that every command has it.
    header = "" if way.token_variable is None else f'-H "Authorization: Bearer ${way.token_variable}" '
    return _filled(CURL, URL=header + shlex.quote(way.url), NAMED=header + shlex.quote(named), TOOL=way.opening)


def _python(way: Way) -> str:
    if way.url is not None and way.token_variable is not None:
        values = {"URL": repr(way.url), "VARIABLE": repr(way.token_variable), "TOOL": way.opening}
        return _filled(PYTHON_TOKEN, **values)
    if way.url is not None:
        return _filled(PYTHON, IMPORTS="", TARGET=repr(way.url), TOOL=way.opening)
    target = f"StdioServerParameters(command={way.command[0]!r}, args={list(way.command[1:])!r})"
    return _filled(PYTHON, IMPORTS=", StdioServerParameters", TARGET=target, TOOL=way.opening)


BLOCKS: Mapping[str, Callable[[Way], str]] = MappingProxyType({
    "claude-code": _claude_code,
    "claude-desktop": _claude_desktop,
    "cursor": _cursor,
    "vscode": _vscode,
    "codex": _codex,
    "curl": _curl,
    "python": _python,
})


def _impossible(host: str, why: str) -> ConfigError:
    return ConfigError(f"no block for {host}", [f"{host}: {why}"])


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _toml(text: str) -> str:
    """A TOML basic string: JSON's escapes are TOML's, but TOML also wants DEL escaped (TOML 1.0, section String)."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _filled(template: str, **values: str) -> str:
    """The template with each `@KEY@` replaced, in one pass: a value that looks like a key stays as it is."""
    return re.sub(r"@([A-Z]+)@", lambda match: values[match[1]], template)
