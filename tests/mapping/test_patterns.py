"""Other people's regular expressions are shown only when every host reads them alike."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openenv_gateway.mapping.patterns import is_portable
from openenv_gateway.mapping.standalone import compiled, is_readable

PIECES = st.sampled_from(list("ab01^$.|?*+(){},[]-\\") + ["(?:", "\\d", "[a-h]", "{2}", "{1,3}", "{2,}", "a+", "(a|b)"])


@pytest.mark.parametrize("source", ["^[a-h][1-8]$", "[\\w.-]+@[a-z]+\\.com", "(?:a|b){2,}", "^\\d{4}-\\d\\d$", "a+?", ""])
def test_what_python_and_javascript_read_alike_is_portable(source: str) -> None:
    assert is_portable(source)


@pytest.mark.parametrize("source", ["(?i)a", "(?P<n>a)", "\\Z", "x{", "a{,3}", "é", "(?=a)", "\\-", "]"])
def test_everything_else_is_not(source: str) -> None:
    assert not is_portable(source)


@pytest.mark.parametrize("source", ["(", "a**", "\\p{L}", "[\\w-.]", "a{4294967296}", "[[a]"])
def test_what_python_cannot_compile_for_sure_is_not_portable(source: str) -> None:
    assert not is_portable(source)


@given(st.lists(PIECES, max_size=8).map("".join), st.text("ab01", max_size=12))
def test_a_portable_pattern_is_read_by_the_validator_as_by_python(source: str, text: str) -> None:
    if is_portable(source) and is_readable(source):
        assert compiled({"pattern": source}).is_valid(text) == (re.search(source, text) is not None)
