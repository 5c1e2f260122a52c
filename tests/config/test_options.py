"""openenv_gateway.config.options: schema, table and dataclasses tell one story."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from openenv_gateway.config.options import PLACES, TAKEN_BY, build, from_text, is_table, misplaced, parts
from openenv_gateway.mapping.options import MappingOptions
from openenv_gateway.settings import ContainerSettings, EnvironmentSettings, GatewaySettings, PoolSettings, Source, Timeouts
from openenv_gateway_schemas import load

DEMO = EnvironmentSettings("demo", Source("demo"))
ROOMS: dict[str, Any] = {
    "source": DEMO.source, "container": DEMO.source.container,
    "mapping": DEMO.mapping, "timeouts": DEMO.timeouts, "pool": DEMO.pool, "environment": DEMO,
}  # fmt: skip


def test_every_option_of_the_schema_has_a_place_and_every_place_an_option() -> None:
    assert PLACES.keys() == parts().keys()
    assert TAKEN_BY.keys() <= PLACES.keys()


def test_every_field_of_the_settings_can_be_set() -> None:
    expected = {("mapping", field.name) for field in fields(MappingOptions)}
    expected |= {("timeouts", field.name) for field in fields(Timeouts)}
    expected |= {("pool", field.name) for field in fields(PoolSettings)}
    expected |= {("source", field.name) for field in fields(Source) if field.name not in ("kind", "target", "container")}
    expected |= {("container", field.name) for field in fields(ContainerSettings)}
    rest = {"name", "source", "mapping", "timeouts", "pool"}
    expected |= {("environment", field.name) for field in fields(EnvironmentSettings) if field.name not in rest}
    assert set(PLACES.values()) == expected


@pytest.mark.parametrize("option", sorted(PLACES))
def test_the_default_in_the_schema_is_the_dataclass_default(option: str) -> None:
    room, field = PLACES[option]
    assert parts()[option].get("default") == getattr(ROOMS[room], field)


@pytest.mark.parametrize("key", sorted(load("config")["properties"].keys() - {"environments"}))
def test_the_default_of_a_gateway_setting_in_the_schema_is_the_dataclass_default(key: str) -> None:
    default = getattr(GatewaySettings(environments=()), key)
    assert load("config")["properties"][key].get("default") == (list(default) if isinstance(default, tuple) else default)


def test_the_schema_names_every_gateway_setting() -> None:
    assert load("config")["properties"].keys() == {field.name for field in fields(GatewaySettings)}


@pytest.mark.parametrize("option", sorted(PLACES))
def test_every_option_is_described_with_an_example(option: str) -> None:
    part = parts()[option]
    assert part["description"].endswith((".", "…")) and part["examples"]


@pytest.mark.parametrize("option", sorted(option for option in PLACES if not is_table(option)))
def test_an_option_as_text_and_as_a_value_come_to_the_same_settings(option: str) -> None:
    source = Source(TAKEN_BY.get(option, ("demo",))[0], "x")
    example = parts()[option]["examples"][0]
    text = str(example).lower() if isinstance(example, bool) else str(example)
    from_spec = build("a", source, {option: from_text(option, text)}, Path("/base"))
    from_file = build("a", source, {option: example}, Path("/base"))
    assert from_spec == from_file != build("a", source, {}, Path("/base"))


@pytest.mark.parametrize("text", ["", "x", "nan", "inf", "1_0", "0x10", "-1", "0", " 5", "1e5", "1" * 400])
def test_a_text_that_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a number"):
        from_text("step_timeout_s", text)


@pytest.mark.parametrize("text", ["", "x", "1.5", "0", "9" * 30])
def test_a_text_that_is_no_count_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a whole number of 1 or more"):
        from_text("max_servers", text)


def test_whole_and_fractional_numbers_become_what_the_dataclasses_promise() -> None:
    built = build("a", Source("demo"), {"step_timeout_s": 20, "max_servers": 2.0, "tool_timeout_s": {"run": 3}}, Path())
    values = (built.timeouts.step_s, built.pool.max_servers, built.timeouts.tools["run"])
    assert values == (20.0, 2, 3.0) and [type(value) for value in values] == [float, int, float]


def test_tables_are_frozen_copies() -> None:
    reset = {"seed": 7}
    built = build("a", Source("demo"), {"reset": reset}, Path())
    reset["seed"] = 8
    assert built.reset == {"seed": 7}
    assert isinstance(built.reset, MappingProxyType)


def test_a_relative_folder_is_seen_from_the_base_and_an_absolute_one_stays() -> None:
    source = Source("cmd", "run")
    assert build("a", source, {"cwd": "sub"}, Path("/base")).source.cwd == Path("/base/sub")
    assert build("a", source, {"cwd": "/else"}, Path("/base")).source.cwd == Path("/else")


def test_paths_of_mounts_are_seen_from_the_base_and_keep_their_mode() -> None:
    mounts = {"/data": "sub", "/out": "/srv/out:rw", "/up": "../up:ro"}
    built = build("a", Source("docker", "x"), {"mounts": mounts}, Path("/base"))
    assert built.source.container.mounts == {"/data": "/base/sub", "/out": "/srv/out:rw", "/up": "/up:ro"}


@pytest.mark.parametrize("text", ["", "True", "1", "yes"])
def test_a_text_that_is_neither_true_nor_false_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected true or false"):
        from_text("read_only", text)


@pytest.mark.parametrize("text", ["", "1.5g", "0", "512 m", "1t", "-1"])
def test_a_text_that_is_no_size_is_refused_with_one_that_is(text: str) -> None:
    with pytest.raises(ValueError, match='expected a text such as "512m" or "2g"'):
        from_text("memory", text)


def test_options_that_a_source_has_no_use_for_are_named_with_those_that_have() -> None:
    assert misplaced(Source("http", "http://h"), {"cwd": ".", "app": "a:b", "reward": "meta"}) == {
        "cwd": "of no use for http sources, only for cmd, uv",
        "app": "of no use for http sources, only for uv",
    }
    assert misplaced(Source("uv", "/x"), {"cwd": ".", "app": "a:b", "env_vars": {}}) == {}
