"""providers/memory.py: sizes as users write them, and what becomes of a process that wants more than its limit."""

from __future__ import annotations

import sys

import pytest

from openenv_client.errors import LaunchFailed
from openenv_client.providers import CommandProvider, UVProvider
from openenv_client.providers.memory import limited, parse_size

GREEDY = [sys.executable, "-c", "held = bytearray(2**30); print('has it')"]


@pytest.mark.parametrize(
    ("text", "size"), [("1", 1), ("100b", 100), ("4K", 4096), ("512m", 512 * 2**20), ("2g", 2 * 2**30), ("3G", 3 * 2**30)]
)
def test_a_size_is_bytes_with_or_without_a_unit(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "0", "-1", "m", "1.5g", "1 g", "1t", "1gb", "0x10"])
def test_what_is_no_size_is_refused_before_anything_runs(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no size: write bytes with b, k, m or g behind, for example 512m"):
        CommandProvider("true", memory=text)
    with pytest.raises(ValueError, match="is no size"):
        UVProvider(project_path=".", memory=text)


def output_of(provider: CommandProvider) -> str:
    provider.start()
    with pytest.raises(LaunchFailed):
        provider.wait_for_ready(20)
    return provider.logs()


def test_a_process_gets_no_more_than_its_limit_whatever_starts_it() -> None:
    assert output_of(CommandProvider(GREEDY)) == "has it"
    assert output_of(CommandProvider(GREEDY, memory="3g")) == "has it"
    assert output_of(CommandProvider(GREEDY, memory="600m")).endswith("MemoryError")
    by_shell = f"{sys.executable} -c 'held = bytearray(2**30)'; exit 1"
    assert output_of(CommandProvider(by_shell, memory="600m")).endswith("MemoryError")


def test_without_a_limit_a_command_is_run_as_it_is() -> None:
    assert limited(["a", "b c"], None) == ["a", "b c"]


def test_with_a_limit_its_words_stay_what_they_are() -> None:
    words = ["echo", "a  b", "$HOME", "'", '"', "*"]
    assert output_of(CommandProvider(words, memory="1g")) == "a  b $HOME ' \" *"
