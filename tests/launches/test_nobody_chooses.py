"""No request of any kind can influence what is launched: neither the command, nor its arguments, variables or folder."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from testkit import attacks, cli

RECORDER = Path(__file__).with_name("recorder.py")
CONFIG = """
[environments.game]
source = "cmd:exec {python} {recorder} {records} {{port}}"
cwd = "{folder}"
env_vars = {{ GAME_LEVEL = "configured", GAME_KEY = "only the operator knows" }}
max_servers = 8
sessions_per_server = 1
queue_timeout_s = 3
idle_timeout_s = 0.2
linger_s = 0.2
idle_server_s = 0.05
"""


@dataclass(frozen=True)
class Attacked:
    """A gateway every lane of which has a server of its own, launched anew; and what was written down of each launch."""

    gateway: cli.GatewayProcess
    folder: Path
    records: Path
    names: Iterator[str]

    def launches(self) -> list[bytes]:
        return [path.read_bytes() for path in sorted(self.records.glob("*.launch"))]


@contextmanager
def recording(folder: Path, records: Path) -> Iterator[Attacked]:
    records.mkdir(exist_ok=True)
    file = folder / "gateway.toml"
    file.write_text(CONFIG.format(python=sys.executable, recorder=RECORDER, records=records, folder=folder))
    with cli.serving(config=file) as gateway:
        yield Attacked(gateway, folder, records, (f"lane-{number}" for number in itertools.count()))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("launches")


@pytest.fixture(scope="module")
def unasked(folder: Path) -> bytes:
    """The launch of a gateway that was never sent any request."""
    with recording(folder, folder / "records") as quiet:
        (launch,) = quiet.launches()
    (path,) = quiet.records.glob("*.launch")
    path.unlink()
    return launch


@pytest.fixture(scope="module")
def attacked(folder: Path, unasked: bytes) -> Iterator[Attacked]:
    """In the same folder, so that what is written down can be the same to the byte."""
    with recording(folder, folder / "records") as gateway:
        yield gateway


def normal(launch: bytes) -> bytes:
    """With the port, the one thing that differs, replaced in the arguments."""
    argv, _, rest = launch.partition(b"\0\0")
    return b"\0".join([*argv.split(b"\0")[:-1], b"PORT"]) + b"\0\0" + rest


def test_what_is_written_down_of_a_launch_is_what_the_operator_configured(unasked: bytes, folder: Path) -> None:
    assert str(RECORDER).encode() in unasked and b"GAME_KEY=only the operator knows" in unasked
    assert unasked.endswith(str(folder).encode())


@pytest.mark.timeout(300)
def test_whatever_is_asked_on_any_route_every_launch_is_the_same_to_the_byte(
    attacked: Attacked, unasked: bytes, record_property: Callable[[str, object], None]
) -> None:
    with httpx.Client(base_url=attacked.gateway.base_url, trust_env=False, timeout=20) as http:

        @settings(max_examples=40, suppress_health_check=list(HealthCheck))
        @given(st.lists(attacks.attacks, min_size=1, max_size=3))
        def attack(several: list[attacks.Attack]) -> None:
            for each in several:
                each(http, next(attacked.names))
            assert {normal(launch) for launch in attacked.launches()} == {normal(unasked)}
            assert not any(attacks.SIGN in path.name for path in attacked.folder.rglob("*"))

        attack()
        assert http.get("/health").status_code == 200
    launches = len(attacked.launches())
    record_property("launches under attack", launches)
    assert launches >= 8, "too few requests led to a launch: this proves little"
    assert attacks.SIGN not in attacked.gateway.log()
