"""Other people's regular expressions are run only when they cannot take long, and shown only when hosts read them alike."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openenv_gateway.mapping.patterns import Pattern, read_pattern

PIECES = st.sampled_from(list("ab01^$.|?*+(){},[]-\\") + ["(?:", "\\d", "[a-h]", "{2}", "{1,3}", "{2,}", "a+", "(a|b)"])


def pattern(source: str) -> Pattern:
    found = read_pattern(source)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("source", "text"),
    [("^[a-h][1-8]$", "z9"), ("^([a-h][1-8]){2}[qrbn]?$", "e2"), ("\\d+", "none"), ("^(up|down)$", "left"), ("a{2,5}", "a")],
)
def test_an_ordinary_pattern_refuses_what_does_not_match(source: str, text: str) -> None:
    assert pattern(source).refuses(text)


@pytest.mark.parametrize("source", ["^[a-h][1-8]$", "e", "^(?:e2|e4)"])
def test_and_accepts_what_does(source: str) -> None:
    assert not pattern(source).refuses("e2")


@pytest.mark.parametrize(
    "source",
    ["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(a*)*b", "^((a?){2,}b?)+$", "^" + "a?" * 40 + "a" * 40, "(?x) a+ # )\n (a+)+b"],
)
def test_a_pattern_that_could_take_for_ever_is_left_to_the_environment(source: str) -> None:
    started = time.monotonic()
    assert not pattern(source).refuses("a" * 5000 + "!")
    assert time.monotonic() - started < 1


def test_a_pattern_is_run_on_short_texts_and_not_on_long_ones_that_would_cost_too_much() -> None:
    several = pattern("a+b+c+d+$")
    assert several.refuses("xyz")
    assert not several.refuses("a" * 10_000)


def test_an_estimate_beyond_all_numbers_is_too_much() -> None:
    assert not pattern("a*" * 400 + "b").refuses("a" * 1000)


@pytest.mark.parametrize("source", ["(", "a**", "\\p{L}", "[\\w-.]", "a{4294967296}", "[[a]"])
def test_what_python_cannot_compile_for_sure_is_no_pattern(source: str) -> None:
    assert read_pattern(source) is None


@pytest.mark.parametrize("source", ["^[a-h][1-8]$", "[\\w.-]+@[a-z]+\\.com", "(?:a|b){2,}", "^\\d{4}-\\d\\d$", "a+?", ""])
def test_what_python_and_javascript_read_alike_is_portable(source: str) -> None:
    assert pattern(source).portable


@pytest.mark.parametrize("source", ["(?i)a", "(?P<n>a)", "\\Z", "x{", "a{,3}", "é", "(?=a)", "\\-", "]"])
def test_everything_else_is_not(source: str) -> None:
    assert not pattern(source).portable


@given(st.lists(PIECES, max_size=8).map("".join), st.text("ab01", max_size=12))
def test_a_pattern_never_refuses_what_it_matches(source: str, text: str) -> None:
    found = read_pattern(source)
    if found is not None and re.search(source, text):
        assert not found.refuses(text)
