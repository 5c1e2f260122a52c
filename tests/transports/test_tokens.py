"""openenv_gateway.transports.tokens: a token file's text as what it grants."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openenv_gateway.transports.tokens import GRANTED, LEAST, Principal, TokenScope, parse_tokens

BLUE, RED, CI = "b" * 32, "r" * 40 + "._~+/-=", "c1" * 32
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Z", "C"], exclude_characters="#"), min_size=1)


def faults(text: str) -> list[tuple[int, str]]:
    return parse_tokens(text)[1]


def test_each_line_grants_a_scope_to_a_name() -> None:
    tokens, wrong = parse_tokens(f"# who plays\r\nagent blue {BLUE}\n\n  agent\tred@team.example   {RED}  \noperator ci {CI}")
    assert wrong == []
    assert len(tokens) == 3
    assert tokens.find(BLUE.encode()) == Principal("blue", frozenset({TokenScope.AGENT}))
    assert tokens.find(RED.encode()) == Principal("red@team.example", frozenset({TokenScope.AGENT}))
    assert tokens.find(CI.encode()) == Principal("ci", frozenset({TokenScope.AGENT, TokenScope.OPERATOR}))


@pytest.mark.parametrize("sent", ["", "x", BLUE[:-1], BLUE + "b", BLUE.upper(), f" {BLUE}", f"agent blue {BLUE}", "blue", "#"])
def test_only_the_whole_token_is_known(sent: str) -> None:
    tokens, _ = parse_tokens(f"agent blue {BLUE}")
    assert tokens.find(sent.encode()) is None


def test_a_name_may_have_an_old_and_a_new_token() -> None:
    tokens, wrong = parse_tokens(f"agent blue {BLUE}\nagent blue {CI}")
    assert (wrong, len(tokens)) == ([], 2)
    assert tokens.find(BLUE.encode()) == tokens.find(CI.encode())


def test_all_faults_are_told_at_once_with_their_lines() -> None:
    told = faults("\n".join([
        "agent blue",
        "# a comment is no fault",
        f"admin blue {BLUE}",
        f"agent -blue {BLUE}",
        "agent blue 12345",
        f"agent blue {BLUE}ü",
        f"agent blue {BLUE} # no comment here",
        f"agent blue {BLUE}",
        f"operator blue {CI}",
        f"agent green {BLUE}",
    ]))  # fmt: skip
    assert [line for line, _ in told] == [1, 3, 4, 5, 6, 7, 9, 10]
    assert [text for line, text in told if line in (1, 3, 5, 9, 10)] == [
        "expected scope, name and token, got 2 words",
        "the first word is the scope: agent or operator",
        f"the token has 5 characters, {LEAST} is the least (openssl rand -hex 32 makes one)",
        "the name blue has the scope agent in line 8: one name, one scope",
        "the token is that of line 8: each is given out once",
    ]


@pytest.mark.parametrize("order", ["{0} agent blue", "agent {0} blue", "{0}", "agent {0}", "agent blue:{0}", "agent,blue,{0}"])
def test_a_fault_never_quotes_what_may_be_the_token(order: str) -> None:
    (fault,) = faults(order.format(CI))
    assert CI not in fault[1] and CI[:8] not in fault[1]


@given(st.lists(st.lists(WORDS, min_size=1, max_size=4), max_size=5))
def test_any_text_is_tokens_or_faults_and_keeps_its_words(lines: list[list[str]]) -> None:
    tokens, wrong = parse_tokens("\n".join(" ".join(words) for words in lines))
    assert len(tokens) + len({line for line, _ in wrong}) >= (1 if lines else 0)
    secrets = {words[2] for words in lines if len(words) == 3 and len(words[2]) > 12}
    assert not any(secret in text for secret in secrets for _, text in wrong)


def test_nothing_that_is_printed_shows_a_token() -> None:
    tokens, _ = parse_tokens(f"operator ci {CI}")
    assert repr(tokens) == "Tokens()"
    assert CI not in repr(tokens.find(CI.encode()))


def test_operator_includes_agent_and_not_the_other_way_round() -> None:
    assert GRANTED[TokenScope.AGENT] < GRANTED[TokenScope.OPERATOR] == set(TokenScope)
