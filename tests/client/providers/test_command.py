"""command.py: what a command line becomes, and what a command is given. The verbs are in test_contract.py."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from openenv_client.errors import LaunchFailed, LaunchTimeout, ProviderError
from openenv_client.providers.command import CommandProvider, command_line


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("serve --port {port} | tee log", ["/bin/sh", "-c", "serve --port 80 | tee log"]),
        (["serve", "--port={port}", "{}"], ["serve", "--port=80", "{}"]),
        (["serve", '{"port": {port}, "x": {y}}'], ["serve", '{"port": 80, "x": {y}}']),
    ],
)
def test_a_string_is_for_the_shell_a_sequence_is_not_and_only_the_port_is_replaced(
    command: str | Sequence[str], line: list[str]
) -> None:
    assert command_line(command, 80) == line


def ended(provider: CommandProvider) -> str:
    """The output of a command that ends by itself."""
    provider.start()
    with pytest.raises(LaunchFailed):
        provider.wait_for_ready(20)
    return provider.logs()


def test_a_command_knows_its_port_by_the_variable_and_by_the_placeholder() -> None:
    provider = CommandProvider("echo {port} $PORT")
    first, second = ended(provider).split()
    assert first == second and int(first) > 1023


def test_a_command_runs_in_its_folder_with_its_variables_and_with_nothing_to_read(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import os, sys; print(os.getcwd(), os.environ['GAME'], repr(sys.stdin.read()))"]
    assert ended(CommandProvider(command, cwd=tmp_path, env_vars={"GAME": "go"})) == f"{tmp_path} go ''"


def test_a_folder_that_is_not_there_is_told_before_anything_runs(tmp_path: Path) -> None:
    provider = CommandProvider("true", cwd=tmp_path / "gone")
    with pytest.raises(ProviderError, match="gone: there is no such folder"):
        provider.start()
    assert provider.poll() == 0


@pytest.mark.parametrize("command", ["sleep 60", ["sleep", "60"]])
def test_a_command_that_never_answers_and_was_told_no_port_is_suspected_of_not_knowing_it(command: str | Sequence[str]) -> None:
    with CommandProvider(command) as provider, pytest.raises(LaunchTimeout, match=r"The command has no \{port\} in it"):
        provider.wait_for_ready(0.1)


def test_a_command_that_was_told_its_port_is_not(tmp_path: Path) -> None:
    with CommandProvider("sleep 60 # {port}") as provider, pytest.raises(LaunchTimeout) as caught:
        provider.wait_for_ready(0.1)
    assert "{port}" not in str(caught.value).partition("within")[2]


@pytest.mark.parametrize("command", ["", "  ", []])
def test_an_empty_command_is_refused(command: str | Sequence[str]) -> None:
    with pytest.raises(ValueError, match="needs a command"):
        CommandProvider(command)
