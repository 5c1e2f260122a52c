"""The witness must see what is wrong, or its silence means nothing."""

from __future__ import annotations

from typing import Any

import pytest
from testkit.witness import Verdicts

REQUEST: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "step", "arguments": {}}}
RESULT: dict[str, Any] = {
    "content": [{"type": "text", "text": "{}"}],
    "structuredContent": {"observation": {}, "reward": 1.0, "done": False},
    "isError": False,
    "_meta": {},
}


def judged(response: dict[str, Any], revision: str = "2025-11-25") -> Verdicts:
    verdicts = Verdicts()
    verdicts.judge(REQUEST, response, revision, None)
    return verdicts


def test_a_valid_message_is_counted_and_passes() -> None:
    verdicts = judged({"jsonrpc": "2.0", "id": 1, "result": RESULT})
    verdicts.check()
    assert verdicts.seen == {("2025-11-25", "tools/call"): 1}


@pytest.mark.parametrize(
    "response",
    [
        {"jsonrpc": "2.0", "id": 2, "result": RESULT},
        {"id": 1, "result": RESULT},
        {"jsonrpc": "2.0", "id": 1, "result": {**RESULT, "content": [{"type": "picture"}]}},
        {"jsonrpc": "2.0", "id": 1, "result": {**RESULT, "content": []}},
        {"jsonrpc": "2.0", "id": 1, "result": {**RESULT, "structuredContent": {"reward": 1.0}}},
        {"jsonrpc": "2.0", "id": 1, "result": {**RESULT, "isError": True}},
        {"jsonrpc": "2.0", "id": 1, "error": {"message": "no code"}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "", "data": {"code": "UNKNOWN_TOOL"}}},
    ],
    ids=["another id", "no version", "unknown block", "no content", "no observation", "both", "no error code", "half data"],
)
def test_a_message_that_is_not_valid_is_a_fault(response: dict[str, Any]) -> None:
    with pytest.raises(AssertionError, match="2025-11-25 tools/call"):
        judged(response).check()


def test_each_revision_is_held_to_its_own_rules() -> None:
    """Results of 2026-07-28 say that they are complete."""
    assert judged({"jsonrpc": "2.0", "id": 1, "result": RESULT}, "2026-07-28").faults
    assert not judged({"jsonrpc": "2.0", "id": 1, "result": {**RESULT, "resultType": "complete"}}, "2026-07-28").faults


def test_a_witness_that_saw_nothing_does_not_pass() -> None:
    with pytest.raises(AssertionError, match="no message"):
        Verdicts().check()
