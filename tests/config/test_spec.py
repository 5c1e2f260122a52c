"""openenv_gateway.config.spec: `[name=]source[?options]`, all faults of one spec together."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openenv_gateway.config.options import TAKEN_BY, is_table, parts
from openenv_gateway.config.spec import NAME, bad_name, parse_spec, portable_spec, require_supported, unsupported
from openenv_gateway.errors import ConfigError
from openenv_gateway.mapping.options import MappingOptions
from openenv_gateway.settings import EnvironmentSettings, GatewaySettings, PoolSettings, Source, Timeouts

FLAT = [option for option in parts() if not is_table(option)]


def faults(text: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        parse_spec(text)
    return caught.value.faults


def test_a_bare_source_has_all_defaults_and_its_own_name() -> None:
    assert parse_spec("demo") == EnvironmentSettings("demo", Source("demo"))


def test_a_whole_spec_is_read() -> None:
    read = parse_spec("chess=docker:chess-env:latest?max_servers=4&step_timeout_s=20&exposure=agent&after_done=pass")
    assert read == EnvironmentSettings(
        "chess",
        Source("docker", "chess-env:latest"),
        mapping=MappingOptions(exposure="agent"),
        timeouts=Timeouts(step_s=20.0),
        pool=PoolSettings(max_servers=4),
        after_done="pass",
    )


@pytest.mark.parametrize("option", FLAT)
def test_every_flat_option_can_stand_in_a_spec(option: str) -> None:
    kind = TAKEN_BY.get(option, ("demo",))[0]
    source = {"cmd": "cmd:run", "uv": "uv:git+https://h/a", "hf": "hf:a/b"}.get(kind, "demo" if kind == "demo" else f"{kind}:a")
    example = parts()[option]["examples"][0]
    example = str(example).lower() if isinstance(example, bool) else example
    assert parse_spec(f"a={source}?{option}={example}") != parse_spec(f"a={source}")


def test_values_may_be_percent_escaped() -> None:
    assert parse_spec("cmd:run?cwd=%2Fmy%20envs%26more").source.cwd == Path("/my envs&more")


def test_a_relative_folder_is_seen_from_the_given_one(tmp_path: Path) -> None:
    assert parse_spec("cmd:run?cwd=sub", folder=tmp_path).source == Source("cmd", "run", cwd=tmp_path / "sub")


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("cmd:run {port}?max_servers=2", "run {port}"),
        ("cmd:run a?b", "run a?b"),
        ("cmd:run fil?text", "run fil?text"),
        ("cmd:run http://x/?page=1", "run http://x/?page=1"),
        ("cmd:run 'http://x/?app=1'", "run 'http://x/?app=1'"),
        ("cmd:run http://x/?app=1?max_servers=2", "run http://x/?app=1"),
        ("cmd:run a?app=1 b", "run a?app=1 b"),
        ("cmd:run?", "run?"),
    ],
)
def test_a_question_mark_of_the_commands_own_stays_in_it(text: str, command: str) -> None:
    assert parse_spec(text).source == Source("cmd", command)


def test_a_misspelt_option_behind_a_command_is_a_fault_and_not_a_word_of_the_command() -> None:
    assert faults("cmd:run {port}?step_timout_s=5&reset") == (
        'option "step_timout_s": unknown; did you mean "step_timeout_s"?',
        'option "reset": a table, which only a configuration file can hold (--config FILE)',
    )


def test_an_option_behind_a_git_source_is_not_part_of_its_url() -> None:
    read = parse_spec("uv:git+https://h/a/b?app=server.app:app")
    assert read.source == Source("uv", "git+https://h/a/b", app="server.app:app")


def test_all_faults_of_a_spec_come_together() -> None:
    query = "max_servers=0&foo_bar_baz=1&exposure&step_timeout_s=x&reward=meta&reward=meta&env_vars=1"
    found = faults(f"My Chess=docker:a b?{query}")
    assert [fault.split(":")[0] for fault in found] == [
        'the name "My Chess" cannot stand in a URL', '"a b" is not the name of an image', 'option "max_servers"',
        'option "foo_bar_baz"', 'option "exposure"', 'option "step_timeout_s"', 'option "reward"', 'option "env_vars"',
    ]  # fmt: skip
    assert found[0].endswith('; "my-chess" would do')
    assert found[2].endswith("expected a whole number of 1 or more, got 0")
    assert found[4].endswith("no value; write exposure=VALUE")
    assert found[5].endswith('expected a number above 0, got "x"')
    assert found[6].endswith("given twice")


def test_an_unknown_option_without_a_near_one_lists_the_known() -> None:
    [fault] = faults("demo?zzz=1")
    assert fault.startswith('option "zzz": unknown; known are ')
    assert all(option in fault for option in FLAT)


def test_an_option_that_the_source_has_no_use_for_is_a_fault() -> None:
    assert faults("docker:x?cwd=a") == ('option "cwd": of no use for docker sources, only for cmd, uv',)


def test_the_message_of_a_fault_repeats_the_spec_without_credentials() -> None:
    with pytest.raises(ConfigError, match="environment a=http://…@h: 1 fault") as caught:
        parse_spec("a=http://user:s3cret@h")
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("name", ["", "_x", "Chess", "a b", "ä"])
def test_a_name_that_cannot_stand_in_a_url_is_refused(name: str) -> None:
    assert faults(f"{name}=demo") == (bad_name(name),)


@given(st.from_regex(NAME, fullmatch=True))
def test_any_name_fit_for_a_url_is_taken_as_it_is(name: str) -> None:
    assert parse_spec(f"{name}=demo").name == name


@given(st.text(max_size=40) | st.sampled_from(["~nobody", "a" * 5000, "/root/x", "cmd:run?cwd=~nobody"]))
def test_any_text_is_a_spec_or_a_config_error(text: str) -> None:
    try:
        assert NAME.fullmatch(parse_spec(text).name)
    except ConfigError as error:
        assert error.faults


@given(st.floats(0.001, 604800).map(lambda value: round(value, 3)), st.integers(1, 10**9))
def test_numbers_come_back_as_written(seconds: float, count: int) -> None:
    read = parse_spec(f"demo?step_timeout_s={quote(str(seconds))}&max_servers={count}")
    assert (read.timeouts.step_s, read.pool.max_servers) == (seconds, count)


@pytest.mark.parametrize(
    "text",
    [
        "demo", "a=demo?step_timeout_s=0.1&max_servers=2", "http://h:1/x?exposure=agent",
        "cmd:run?cwd=sub%26x%20y&late_reply_s=0", "cmd:run a?b",
        "cmd:run http://x/?app=1?lane_queue=16", "uv:plain?app=server.app:app", "echo_env", "docker:r:5000/a:b",
    ],
)  # fmt: skip
def test_a_portable_spec_means_the_same_from_any_folder(text: str, tmp_path: Path) -> None:
    for name in ("echo_env", "plain"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "openenv.yaml").touch()
    assert parse_spec(portable_spec(text, folder=tmp_path), folder=Path("/nowhere")) == parse_spec(text, folder=tmp_path)


def test_a_portable_spec_names_its_environment_and_keeps_what_was_given(tmp_path: Path) -> None:
    assert portable_spec("cmd:run {port}?cwd=sub&max_servers=2", folder=tmp_path) == (
        f"sub=cmd:run {{port}}?cwd={tmp_path}/sub&max_servers=2"
    )


@pytest.mark.parametrize(
    "text", ["demo", "http://h:1", "cmd:run {port}", "uv:git+https://h/a", "docker:a", "hf:a/b", "swarm:a", "py:a:B"]
)
def test_what_this_version_can_serve_is_supported(text: str) -> None:
    assert unsupported(parse_spec(text)) is None


def test_what_it_cannot_serve_is_read_and_named_with_what_works() -> None:
    reason = unsupported(parse_spec("mine=k8s:a"))
    assert reason is not None
    assert reason.startswith('environment "mine": this version cannot launch k8s:IMAGE sources yet')
    assert "what works now: demo, http://HOST:PORT, cmd:COMMAND with {port}, uv:PATH or uv:git+URL, docker:IMAGE, " in reason
    assert reason.endswith("give its URL, or use docker: or swarm: here.")


def test_all_unsupported_environments_are_named_together() -> None:
    environments = tuple(parse_spec(text) for text in ("k8s:a", "demo", "c=k8s:b"))
    with pytest.raises(ConfigError) as caught:
        require_supported(GatewaySettings(environments))
    assert len(caught.value.faults) == 2
    require_supported(GatewaySettings(environments[1:2]))
