"""openenv_gateway.config.file: TOML file, command line, both; all faults together, each with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from openenv_gateway.config.file import from_specs, load_config
from openenv_gateway.errors import ConfigError
from openenv_gateway.mapping.options import MappingOptions
from openenv_gateway.settings import EnvironmentSettings, GatewaySettings, PoolSettings, Source, Timeouts

DEMO = EnvironmentSettings("demo", Source("demo"))


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "gateway.toml"
    path.write_text(text, encoding="utf-8")
    return path


def file_faults(path: Path) -> list[str]:
    """The faults without the folder of the file, which every one begins with."""
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert str(caught.value).startswith(f"configuration {path}: {len(caught.value.faults)} fault")
    assert all(fault.startswith(f"{path}:") for fault in caught.value.faults)
    return [fault.removeprefix(f"{path.parent}/") for fault in caught.value.faults]


def test_an_empty_file_is_all_defaults(tmp_path: Path) -> None:
    assert load_config(written(tmp_path, "")) == GatewaySettings(environments=())


def test_a_byte_order_mark_is_no_part_of_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, "\ufeffport = 1\nhost = 2\n")
    assert file_faults(path) == ["gateway.toml:2: host: expected a text, got 2"]


def test_a_whole_file_becomes_settings(tmp_path: Path) -> None:
    path = written(tmp_path, """
host = "0.0.0.0"
port = 0
allowed_hosts = ["gateway.example.org"]
allowed_origins = ["https://app.example.org"]
token_file = "secrets/tokens"
max_body_bytes = 2048
max_sessions = 7
session_idle_s = 60
drain_timeout_s = 1.5
page_size = 3

[environments.chess]
source = "docker:chess-env:latest"
exposure = "agent"
reward = "hidden"
step_timeout_s = 20
tool_timeout_s = { run = 300 }
max_servers = 2
reset = { seed = 7, deep = { list = [1, "a"] } }
late_reply = "execute"

[environments.own]
source = "cmd:python server.py --port {port}"
cwd = "servers"
env_vars = { LEVEL = "3" }
""")  # fmt: skip
    assert load_config(path) == GatewaySettings(
        environments=(
            EnvironmentSettings(
                "chess",
                Source("docker", "chess-env:latest"),
                mapping=MappingOptions(exposure="agent", reward="hidden"),
                timeouts=Timeouts(step_s=20.0, tools={"run": 300.0}),
                pool=PoolSettings(max_servers=2),
                reset={"seed": 7, "deep": {"list": [1, "a"]}},
                late_reply="execute",
            ),
            EnvironmentSettings(
                "own", Source("cmd", "python server.py --port {port}", cwd=tmp_path / "servers", env_vars={"LEVEL": "3"})
            ),
        ),
        host="0.0.0.0",
        port=0,
        allowed_hosts=("gateway.example.org",),
        allowed_origins=("https://app.example.org",),
        token_file=tmp_path / "secrets" / "tokens",
        max_body_bytes=2048,
        max_sessions=7,
        session_idle_s=60.0,
        drain_timeout_s=1.5,
        page_size=3,
    )


def test_a_folder_source_is_seen_from_the_files_folder(tmp_path: Path) -> None:
    (tmp_path / "echo_env").mkdir()
    (tmp_path / "echo_env" / "openenv.yaml").touch()
    settings = load_config(written(tmp_path, '[environments.echo]\nsource = "echo_env"\n'))
    assert settings.environments == (EnvironmentSettings("echo", Source("uv", str(tmp_path / "echo_env"))),)


def test_all_faults_come_together_in_the_order_of_their_lines(tmp_path: Path) -> None:
    path = written(tmp_path, """\
prot = 8700

[environments.chess]
source = "dokcer:x"
step_timeout_s = "x"
env_vars = { TOKEN = 12345, OTHER = "s3cret" }

[environments.demo]
source = "demo"
step_timout_s = 5
cwd = "here"

[environments.Bad]
""")
    faults = file_faults(path)
    assert [fault.split(": ", 2)[:2] for fault in faults] == [
        ["gateway.toml:1", "prot"],
        ["gateway.toml:4", "environments.chess.source"],
        ["gateway.toml:5", "environments.chess.step_timeout_s"],
        ["gateway.toml:6", "environments.chess.env_vars.TOKEN"],
        ["gateway.toml:10", "environments.demo.step_timout_s"],
        ["gateway.toml:11", "environments.demo.cwd"],
        ["gateway.toml:13", "environments.Bad"],
        ["gateway.toml:13", "environments.Bad.source"],
    ]
    assert faults[2].endswith('environments.chess.step_timeout_s: expected a number above 0, got "x"')
    assert faults[4].endswith('unknown; did you mean "step_timeout_s"?')
    assert faults[5].endswith("of no use for demo sources, only for cmd, uv")
    assert "s3cret" not in str(faults) and "12345" not in str(faults)


def test_options_behind_a_source_in_a_file_are_pointed_to_their_place(tmp_path: Path) -> None:
    [fault] = file_faults(written(tmp_path, '[environments.a]\nsource = "docker:x?max_servers=4"\n'))
    assert fault == (
        'gateway.toml:2: environments.a.source: "x?max_servers=4" is not the name of an image; '
        "options stand beside source, as keys of their own"
    )


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a = 1\nb = \n", "gateway.toml:2: not TOML: Invalid value"),
        ("[environments.a]\n[environments.a]\n", "gateway.toml:2: not TOML: Cannot declare ('environments', 'a') twice"),
        ('x = "s3cret\n', "gateway.toml:1: not TOML: Illegal character '\\n'"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_toml_says_where_and_why(tmp_path: Path, text: str, fault: str) -> None:
    assert file_faults(written(tmp_path, text)) == [fault]


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    assert file_faults(tmp_path / "none.toml") == ["none.toml: cannot be read: No such file or directory"]
    (tmp_path / "latin.toml").write_bytes(b'host = "\xe4"')
    assert file_faults(tmp_path / "latin.toml") == ["latin.toml: not UTF-8: invalid continuation byte at byte 8"]


def test_specs_alone_make_settings() -> None:
    settings = from_specs(["demo", "other=demo?exposure=agent"], host="0.0.0.0", port=0)
    agent = EnvironmentSettings("other", Source("demo"), mapping=MappingOptions(exposure="agent"))
    assert settings == GatewaySettings(environments=(DEMO, agent), host="0.0.0.0", port=0)


def test_the_command_line_comes_on_top_of_the_file(tmp_path: Path) -> None:
    base = load_config(written(tmp_path, 'host = "::1"\nport = 1\nmax_sessions = 5\n[environments.demo]\nsource = "demo"\n'))
    settings = from_specs(["b=demo"], base=base, port=2)
    assert [environment.name for environment in settings.environments] == ["demo", "b"]
    assert (settings.host, settings.port, settings.max_sessions) == ("::1", 2, 5)
    assert from_specs([], base=base) == base


def test_the_token_file_of_the_command_line_replaces_that_of_the_file(tmp_path: Path) -> None:
    base = load_config(written(tmp_path, 'token_file = "/etc/tokens"\n[environments.demo]\nsource = "demo"\n'))
    assert (base.token_file, from_specs([], base=base).token_file) == (Path("/etc/tokens"), Path("/etc/tokens"))
    assert from_specs([], base=base, token_file=Path("mine")).token_file == Path("mine")


def test_exposure_from_the_command_line_holds_unless_a_spec_names_its_own() -> None:
    base = GatewaySettings(environments=(DEMO,))
    settings = from_specs(["b=demo", "c=demo?exposure=full"], base=base, exposure="agent")
    assert [environment.mapping.exposure for environment in settings.environments] == ["agent", "agent", "full"]


def test_a_name_used_twice_is_told_with_both_sources_and_a_way_out() -> None:
    with pytest.raises(ConfigError) as caught:
        from_specs(["demo=http://h:1", "x=cmd:run"], base=GatewaySettings(environments=(DEMO,)))
    assert caught.value.faults == (
        'the name "demo" is used twice, by demo and http://h:1: give one another name, for example demo-2=http://h:1',
    )


def test_credentials_in_a_source_are_not_repeated_with_its_name() -> None:
    with pytest.raises(ConfigError) as caught:
        from_specs(["a=uv:git+https://s3cret@h/one", "a=uv:git+https://s3cret@h/two"])
    assert "s3cret" not in str(caught.value) and "uv:git+https://…@h/two" in str(caught.value)


def test_the_faults_of_all_specs_come_together() -> None:
    with pytest.raises(ConfigError) as caught:
        from_specs(["demo?max_servers=0", "demo", "demo", "http://a:s3cret@h"], port=-1, host="")
    assert caught.value.faults == (
        'demo?max_servers=0: option "max_servers": expected a whole number of 1 or more, got 0',
        "http://…@h: a URL with credentials would be shown in logs and banners; leave them out",
        'the name "demo" is used twice, by demo and demo: give one another name, for example demo-2=demo',
        "port: expected a whole number from 0 to 65535, got -1",
        "host: expected an address, got an empty text (0.0.0.0 listens on all)",
    )


def test_no_environment_at_all_is_a_fault_with_an_example() -> None:
    with pytest.raises(ConfigError) as caught:
        from_specs([])
    assert caught.value.faults == ("no environment: name at least one, for example: openenv-gateway serve demo",)
