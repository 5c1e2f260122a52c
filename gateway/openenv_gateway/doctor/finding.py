"""What a check found, as a plain value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any


class Status(StrEnum):
    """NOTE: something is absent or scarce that this machine may do without; FAILED: what was asked for cannot work."""

    OK = "ok"
    NOTE = "note"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Finding:
    """`said` is what is the case, in words for the operator; `remedy` what to do about it, empty where nothing is to be done.
    `details` are the same facts for programs, as JSON values."""

    check: str
    status: Status
    said: str
    remedy: str = ""
    details: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    def as_json(self) -> dict[str, Any]:
        """Without what there is nothing to say of."""
        told = {"check": self.check, "status": self.status.value, "said": self.said}
        if self.remedy:
            told["remedy"] = self.remedy
        return {**told, **({"details": dict(self.details)} if self.details else {})}


def ok(check: str, said: str, **details: Any) -> Finding:
    return Finding(check, Status.OK, said, details=details)


def absent(check: str, said: str, remedy: str, *, is_needed: bool, **details: Any) -> Finding:
    """Something is not there: a failure where what the operator named needs it, else a note."""
    return Finding(check, Status.FAILED if is_needed else Status.NOTE, said, remedy, details)
