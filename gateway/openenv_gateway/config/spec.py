"""One environment as one word on the command line: `[name=]source[?options]`.

    demo        chess=docker:chess-env:latest?max_servers=4&step_timeout_s=20        http://127.0.0.1:8000?exposure=agent

Options are those of the configuration file, as a query with percent-escapes; tables (env_vars, reset, tool_timeout_s) need a
file. Where the options begin: at the first `?`; except that a command or a git URL may have a `?` of its own. There the last
`?` counts, and only if `key=value&…` follows it, at least one key is an option or nearly one, and no quote is open.
(A command that ends like that by itself is followed by one more option: `cmd:get http://x/?app=1?max_servers=4`.)
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, unquote

from openenv_gateway.config.options import build, from_text, is_table, misplaced, parts
from openenv_gateway.config.sources import FORMS, BadSource, default_name, hidden_credentials, parse_source
from openenv_gateway.config.words import did_you_mean, shown
from openenv_gateway.errors import ConfigError
from openenv_gateway.settings import EnvironmentSettings, GatewaySettings, Source, SourceKind

NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
NAMED = re.compile(r"([^:/?=.]*)=(.+)", re.DOTALL)
PAIR = r"\w+(=[^&\s\"']*)?"
OPTIONS = re.compile(f"{PAIR}(&{PAIR})*")
MAY_CONTAIN_A_QUERY = ("cmd:", "uv:git+")
NOT_YET: Mapping[SourceKind, str] = MappingProxyType({
    "k8s": "Run the image as a Deployment with a Service and give its URL, or use docker: or swarm: here."
})
"""Kinds that are understood but cannot be launched yet, each with what to do instead."""


@dataclass(frozen=True, slots=True)
class Spec:
    """One spec, read: the values are valid, the options that were given and no others."""

    name: str
    source: Source
    values: Mapping[str, Any]
    folder: Path

    def settings(self, **defaults: Any) -> EnvironmentSettings:
        """The settings; `defaults` are options that hold where the spec does not say otherwise."""
        return build(self.name, self.source, {**defaults, **self.values}, self.folder)


def parse_spec(text: str, *, folder: Path | None = None) -> EnvironmentSettings:
    """The environment that a spec names; relative paths are seen from `folder` (default: the working directory).

    Raises ConfigError with all faults of the spec.
    """
    return read_spec(text, folder=folder).settings()


def read_spec(text: str, *, folder: Path | None = None) -> Spec:
    """As parse_spec, with what was given still apart from the defaults."""
    folder = folder or Path.cwd()
    name, rest = _split_name(text.strip())
    source_text, query = _split_options(rest)
    values, faults = _read_options(query)
    source = None
    try:
        source = parse_source(source_text, folder)
    except BadSource as error:
        faults.insert(0, str(error))
    if source is not None:
        faults += [f'option "{option}": {why}' for option, why in misplaced(source, values).items()]
    if name is not None and not NAME.fullmatch(name):
        faults.insert(0, bad_name(name))
    if faults or source is None:
        raise ConfigError(f"environment {hidden_credentials(text)}", faults)
    return Spec(name or default_name(build("", source, values, folder).source), source, values, folder)


def portable_spec(text: str, *, folder: Path | None = None) -> str:
    """The same spec with its name written out and its folders absolute: it means the same wherever it is pasted.

    Raises ConfigError as parse_spec does.
    """
    spec = read_spec(text, folder=folder)
    values = dict(spec.values)
    if "cwd" in values:
        values["cwd"] = str(spec.settings().source.cwd)
    options = "&".join(f"{option}={quote(_text(value), safe='/:')}" for option, value in values.items())
    source = f"{spec.name}={spec.source}"
    return f"{source}?{options}" if options else source


def bad_name(name: str) -> str:
    """Why a name cannot be an environment's, with one that can."""
    better = re.sub(r"[^a-z0-9_]+", "-", name.lower()).strip("-_")
    try_this = f'; "{better}" would do' if better else ""
    return f"the name {shown(name)} cannot stand in a URL: use small letters, digits, hyphens, underscores{try_this}"


def unsupported(environment: EnvironmentSettings) -> str | None:
    """Why this version cannot serve an environment, None if it can. Asked before anything is started."""
    kind = environment.source.kind
    if kind not in NOT_YET:
        return None
    now = ", ".join(form for each, form in FORMS.items() if each not in NOT_YET)
    return (
        f'environment "{environment.name}": this version cannot launch {FORMS[kind]} sources yet; what works now: {now}. '
        f"{NOT_YET[kind]}"
    )


def require_supported(settings: GatewaySettings) -> None:
    """Raises ConfigError naming every environment that this version cannot serve."""
    faults = [fault for environment in settings.environments if (fault := unsupported(environment)) is not None]
    if faults:
        raise ConfigError("sources that are not there yet", faults)


def _split_name(text: str) -> tuple[str | None, str]:
    match = NAMED.fullmatch(text)
    return (match[1], match[2]) if match else (None, text)


def _split_options(text: str) -> tuple[str, str]:
    if not text.startswith(MAY_CONTAIN_A_QUERY):
        source, _, query = text.partition("?")
        return source, query
    source, mark, query = text.rpartition("?")
    return (source, query) if mark and _are_options(query) and _closed_quotes(source) else (text, "")


def _are_options(query: str) -> bool:
    keys = [pair.partition("=")[0] for pair in query.split("&") if "=" in pair]
    return bool(OPTIONS.fullmatch(query)) and any(key in parts() or did_you_mean(key, parts()) for key in keys)


def _closed_quotes(command: str) -> bool:
    try:
        shlex.split(command)
    except ValueError:
        return False
    return True


def _read_options(query: str) -> tuple[dict[str, Any], list[str]]:
    values: dict[str, Any] = {}
    faults: list[str] = []
    for pair in query.split("&") if query else []:
        option, equals, text = pair.partition("=")
        try:
            if option in values:
                raise ValueError("given twice")
            values[option] = _read_option(option, equals, unquote(text))
        except ValueError as error:
            faults.append(f'option "{option}": {error}')
    return values, faults


def _read_option(option: str, equals: str, text: str) -> Any:
    if option not in parts():
        raise ValueError(f"unknown{did_you_mean(option, parts()) or '; known are ' + ', '.join(_flat())}")
    if is_table(option):
        raise ValueError("a table, which only a configuration file can hold (--config FILE)")
    if not equals:
        raise ValueError(f"no value; write {option}=VALUE")
    return from_text(option, text)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _flat() -> list[str]:
    return [option for option in parts() if not is_table(option)]
