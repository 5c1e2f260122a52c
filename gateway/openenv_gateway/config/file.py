"""The gateway's settings from a TOML file, from the command line, or from both. All faults are told together.

    host = "127.0.0.1"

    [environments.chess]
    source = "docker:chess-env:latest"
    step_timeout_s = 20

The file's shape is the published `config.schema.json`; nobody below this module reads files, arguments or the schema.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from openenv_gateway.config import toml_lines
from openenv_gateway.config.options import build, misplaced, parts
from openenv_gateway.config.sources import BadSource, hidden_credentials, parse_source, seen_from
from openenv_gateway.config.spec import Spec, read_spec
from openenv_gateway.errors import ConfigError
from openenv_gateway.mapping.options import Exposure
from openenv_gateway.settings import EnvironmentSettings, GatewaySettings, Source

Fault = tuple[tuple[str, ...], str]

LISTS = ("allowed_hosts", "allowed_origins")
PATHS = ("token_file",)
DURATIONS = ("session_idle_s", "drain_timeout_s")


def load_config(path: Path | str) -> GatewaySettings:
    """The settings in a TOML file; relative paths in it are seen from its folder.

    Raises ConfigError with every fault as `FILE:LINE: environments.chess.step_timeout_s: expected …`, or with the one
    fault of a file that cannot be read or is no TOML. Values of environment variables never appear in it.
    """
    path = Path(path)
    text = _read(path)
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line, message = toml_lines.error_place(error, text)
        raise ConfigError(f"configuration {path}", [f"{path}:{line}: not TOML: {message}"]) from error
    faults, sources = _check(document, path.parent)
    if faults:
        raise ConfigError(f"configuration {path}", _placed(faults, path, text))
    return _settings(document, sources, path.parent)


def from_specs(
    specs: Sequence[str],
    *,
    base: GatewaySettings | None = None,
    host: str | None = None,
    port: int | None = None,
    token_file: Path | None = None,
    exposure: Exposure | None = None,
) -> GatewaySettings:
    """The settings that the command line asks for, on top of a file's (`base`).

    The file's environments come first, then the specs'. `host`, `port` and `token_file` replace the file's. `exposure`
    replaces that of every environment but those whose own spec names one. Raises ConfigError with the faults of all specs, a
    name that is used twice, or that there is no environment at all.
    """
    base = base or GatewaySettings(environments=())
    read, faults = _read_specs(specs)
    kept = tuple(_exposed(environment, exposure) for environment in base.environments)
    defaults = {} if exposure is None else {"exposure": exposure}
    environments = kept + tuple(spec.settings(**defaults) for spec in read)
    faults += _duplicates(environments)
    if not environments and not faults:
        faults.append("no environment: name at least one, for example: openenv-gateway serve demo")
    if port is not None and not 0 <= port <= 65535:
        faults.append(f"port: expected a whole number from 0 to 65535, got {port}")
    if host == "":
        faults.append("host: expected an address, got an empty text (0.0.0.0 listens on all)")
    if faults:
        raise ConfigError("what the command line asks for", faults)
    return replace(
        base,
        environments=environments,
        host=base.host if host is None else host,
        port=base.port if port is None else port,
        token_file=base.token_file if token_file is None else token_file,
    )


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")  # editors on Windows begin a file with a mark
    except OSError as error:
        raise ConfigError(f"configuration {path}", [f"{path}: cannot be read: {error.strerror or error}"]) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"configuration {path}", [f"{path}: not UTF-8: {error.reason} at byte {error.start}"]) from error


def _check(document: Mapping[str, Any], folder: Path) -> tuple[list[Fault], dict[str, Source]]:
    # jsonschema takes longer to import than everything else here together, and a start without a file does not need it.
    from openenv_gateway.config.faults import schema_faults  # noqa: PLC0415

    faults: list[Fault] = schema_faults(document)
    sources: dict[str, Source] = {}
    for name, table in _tables(document):
        text = table.get("source")
        if not isinstance(text, str) or not text:
            continue  # told by the schema
        at = ("environments", name)
        try:
            sources[name] = parse_source(text, folder)
        except BadSource as error:
            hint = "; options stand beside source, as keys of their own" if "?" in text else ""
            faults.append(((*at, "source"), f"{error}{hint}"))
            continue
        faults += [((*at, option), why) for option, why in misplaced(sources[name], table).items()]
    return faults, sources


def _tables(document: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    environments = document.get("environments")
    if isinstance(environments, Mapping):
        yield from ((name, table) for name, table in environments.items() if isinstance(table, Mapping))


def _placed(faults: Sequence[Fault], path: Path, text: str) -> list[str]:
    lines = toml_lines.key_lines(text)
    placed = sorted((toml_lines.line_of(at, lines), ".".join(at), message) for at, message in faults)
    return [f"{path}:{line}: {at}: {message}" if at else f"{path}:{line}: {message}" for line, at, message in placed]


def _settings(document: Mapping[str, Any], sources: Mapping[str, Source], folder: Path) -> GatewaySettings:
    environments = tuple(
        build(name, sources[name], {option: value for option, value in table.items() if option in parts()}, folder)
        for name, table in _tables(document)
    )
    plain = {key: _settled(key, value, folder) for key, value in document.items() if key != "environments"}
    return GatewaySettings(environments=environments, **plain)


def _settled(key: str, value: Any, folder: Path) -> Any:
    if key in LISTS:
        return tuple(value)
    if key in PATHS:
        return seen_from(folder, value)
    if key in DURATIONS:
        return float(value)
    return value if isinstance(value, str) else int(value)


def _read_specs(specs: Sequence[str]) -> tuple[list[Spec], list[str]]:
    read: list[Spec] = []
    faults: list[str] = []
    for text in specs:
        try:
            read.append(read_spec(text))
        except ConfigError as error:
            faults += [f"{hidden_credentials(text)}: {fault}" for fault in error.faults]
    return read, faults


def _exposed(environment: EnvironmentSettings, exposure: Exposure | None) -> EnvironmentSettings:
    if exposure is None:
        return environment
    return replace(environment, mapping=replace(environment.mapping, exposure=exposure))


def _duplicates(environments: Sequence[EnvironmentSettings]) -> list[str]:
    first: dict[str, EnvironmentSettings] = {}
    faults = []
    for environment in environments:
        other = first.setdefault(environment.name, environment)
        if other is not environment:
            faults.append(
                f'the name "{environment.name}" is used twice, by {_source(other)} and {_source(environment)}: '
                f"give one another name, for example {environment.name}-2={_source(environment)}"
            )
    return faults


def _source(environment: EnvironmentSettings) -> str:
    return hidden_credentials(str(environment.source))
