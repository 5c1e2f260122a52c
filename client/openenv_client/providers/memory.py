"""How much memory a server may have: the sizes that users write, and the limit on a process."""

from __future__ import annotations

import re
from collections.abc import Sequence

_SIZE = re.compile(r"([1-9]\d*)([bkmg]?)", re.IGNORECASE)
_UNITS = {"": 1, "b": 1, "k": 2**10, "m": 2**20, "g": 2**30}


def parse_size(text: str) -> int:
    """Bytes of `512m` and the like. Raises `ValueError` for what is no size."""
    found = _SIZE.fullmatch(text)
    if found is None:
        raise ValueError(f"memory={text!r} is no size: write bytes with b, k, m or g behind, for example 512m")
    return int(found[1]) * _UNITS[found[2].lower()]


def limited(command: Sequence[str], memory: str | None) -> list[str]:
    """The command with a limit on the address space of each of its processes (RLIMIT_AS, inherited by what it starts); None:
    without one. A process that asks for more gets an error, in Python MemoryError. Address space is more than what is used."""
    if memory is None:
        return list(command)
    return ["/bin/sh", "-c", 'ulimit -v "$0" && exec "$@"', str(max(1, parse_size(memory) // 1024)), *command]
