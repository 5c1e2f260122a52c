"""Observations that are one text, told as that text."""

from __future__ import annotations

import pytest

from openenv_client.frames import JsonObject
from openenv_gateway.mapping.plain import plain_text


def told(observation: JsonObject, **members: object) -> str | None:
    return plain_text({"observation": observation, "reward": None, "done": False, **members})


def test_one_text_is_told_as_it_is() -> None:
    assert told({"prompt": "Guess a number.\n> "}) == "Guess a number.\n> "
    assert told({"prompt": "Guess.", "score": None, "hints": [], "info": {}, "note": "", "metadata": {"turn": 1}}) == "Guess."
    assert told({"text": "Look:", "screen": {"$content": 1}}) == "Look:"


def test_what_there_is_to_tell_follows_line_by_line() -> None:
    text = told(
        {"text": "You won."},
        reward=1.0,
        done=True,
        next="call reset",
        notice="A session was opened.",
        late={"tool": "step", "done": False},
    )
    assert text is not None
    assert text.splitlines() == [
        "You won.",
        "reward: 1.0",
        "done: true",
        "next: call reset",
        "notice: A session was opened.",
        'late: {"tool":"step","done":false}',
    ]
    assert told({"text": "Go on."}, reward=0) == "Go on.\nreward: 0"


def test_an_error_in_the_metadata_is_told() -> None:
    assert told({"text": "No sandbox.", "metadata": {"error": "no key"}}) == "No sandbox.\nerror: no key"
    assert told({"text": "No sandbox.", "metadata": {"error": {"code": 7}}}) == 'No sandbox.\nerror: {"code":7}'


@pytest.mark.parametrize(
    "observation",
    [
        {},
        {"text": ""},
        {"a": "x", "b": "y"},
        {"text": "x", "turn": 0},
        {"turn": 3},
        {"metadata": {"error": "e"}},
        {"a": ["x"]},
    ],
)
def test_anything_else_is_left_to_json(observation: JsonObject) -> None:
    assert told(observation) is None
