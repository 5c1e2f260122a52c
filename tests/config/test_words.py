"""openenv_gateway.config.words: the small check agrees with the JSON Schema validator; the words tell what is wrong."""

from __future__ import annotations

import datetime
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from openenv_gateway.config.options import is_table, parts
from openenv_gateway.config.words import did_you_mean, fits, kind, misfit, shown

FLAT = [name for name in parts() if not is_table(name)]
SECONDS = {"type": "number", "exclusiveMinimum": 0, "maximum": 100}
COUNT = {"type": "integer", "minimum": 1}
VALUES = (
    st.none() | st.booleans() | st.integers(-2, 70) | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4)
    | st.sampled_from(["full", "agent", "hidden", "plain", "pass", "tell", "512m", "2gb"]) | st.lists(st.integers(), max_size=1)
)  # fmt: skip


@given(st.sampled_from(FLAT), VALUES)
def test_the_check_without_jsonschema_decides_as_the_published_schema_does(option: str, value: Any) -> None:
    assert fits(parts()[option], value) is Draft202012Validator(parts()[option]).is_valid(value)


def test_nan_never_fits() -> None:
    assert not fits(SECONDS, math.nan)


@pytest.mark.parametrize(
    ("part", "value", "words"),
    [
        (SECONDS, "x", 'expected a number above 0, got "x"'),
        (SECONDS, 101, "expected a number of at most 100, got 101"),
        (SECONDS, True, "expected a number above 0, got true"),
        (COUNT, 0, "expected a whole number of 1 or more, got 0"),
        (COUNT, 1.5, "expected a whole number of 1 or more, got 1.5"),
        ({"type": "string", "enum": ["full", "agent"]}, "ful", 'expected one of "full", "agent", got "ful"'),
        ({"type": "string", "minLength": 1}, "", 'expected a text that is not empty, got ""'),
        ({"type": "string"}, datetime.date(2026, 1, 1), "expected a text, got a date or time"),
        ({"type": "array"}, {"a": 1}, "expected a list, got a table"),
        ({"type": "object"}, [1], "expected a table, got a list"),
        ({"type": "number"}, math.nan, "expected a number, got nan"),
    ],
)
def test_a_misfit_is_told_in_words(part: dict[str, Any], value: object, words: str) -> None:
    assert not fits(part, value)
    assert misfit(part, value) == words


def test_a_long_text_is_shown_shortened() -> None:
    assert shown("x" * 500) == '"' + "x" * 58 + '…"'


WORDS: list[tuple[object, str]] = [(True, "a boolean"), (1, "a number"), ("s", "a text"), ([], "a list"), ({}, "a table")]


@pytest.mark.parametrize(("value", "word"), WORDS)
def test_a_kind_says_nothing_of_the_value(value: object, word: str) -> None:
    assert kind(value) == word


def test_the_nearest_known_word_is_offered_and_nothing_if_none_is_near() -> None:
    assert did_you_mean("step_timout_s", FLAT) == '; did you mean "step_timeout_s"?'
    assert did_you_mean("zzz", FLAT) == ""
