"""Names that every host accepts, the same on every start."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openenv_gateway.mapping.naming import free_name, property_names, sentence_of, tool_name, words_of

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60)  # lone surrogates included


@pytest.mark.parametrize("name", ["echo", "_x", "get-state", "a" * 40, "Tool2"])
def test_a_name_that_hosts_accept_stays(name: str) -> None:
    assert tool_name(name, 40) == name


@pytest.mark.parametrize(
    ("wanted", "stem"),
    [("a.b", "a_b_"), ("3d", "d_"), ("ü", "___"), ("", "tool_"), ("-", "tool_"), ("a" * 41, "a" * 31 + "_")],
)
def test_any_other_is_made_of_its_letters_and_a_hash(wanted: str, stem: str) -> None:
    name = tool_name(wanted, 40)
    assert re.fullmatch(re.escape(stem) + "[0-9a-f]{8}", name) or re.fullmatch("__[0-9a-f]{8}", name)
    assert name == tool_name(wanted, 40)


def test_a_name_that_is_taken_becomes_another_and_so_does_a_hash_that_is_taken() -> None:
    once = tool_name("observe", 40, {"observe"})
    assert once.startswith("observe_")
    twice = tool_name("observe", 40, {"observe", once})
    assert twice.startswith("observe_")
    assert twice != once


def test_no_name_at_all_is_an_error() -> None:
    with pytest.raises(ValueError, match="no free tool name of 0 characters for 'a'"):
        tool_name("a", 0, {""})


@given(ANY_TEXT, st.integers(12, 64))
def test_every_tool_name_keeps_the_rule_and_the_limit(wanted: str, limit: int) -> None:
    name = tool_name(wanted, limit)
    assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", name)
    assert len(name) <= limit


def test_odd_property_names_become_plain_ones_that_collide_with_nothing() -> None:
    odd = ["private", "_private", "$private", "a.b", "9", "ключ", "-", "x-y"]
    assert property_names(odd) == {
        "private": "private",
        "private_2": "_private",
        "private_3": "$private",
        "a_b": "a.b",
        "arg_9": "9",
        "arg": "ключ",
        "arg_2": "-",
        "x_y": "x-y",
    }


@given(st.lists(ANY_TEXT, unique=True))
def test_every_property_has_one_name_that_keeps_the_rule(originals: list[str]) -> None:
    names = property_names(originals)
    assert list(names.values()) == originals
    assert all(re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) for name in names)


def test_a_free_name_is_numbered_from_two() -> None:
    assert free_name("a", {"b"}) == "a"
    assert free_name("a", {"a", "a_2"}) == "a_3"


@pytest.mark.parametrize(
    ("name", "words"),
    [("MoveAction", ["move", "action"]), ("move-action", ["move", "action"]), ("HTTPServer_2", ["http", "server", "2"])],
)
def test_the_words_in_a_name(name: str, words: list[str]) -> None:
    assert words_of(name) == words


def test_a_name_as_a_sentence_and_one_without_words_as_it_is() -> None:
    assert sentence_of("action_id") == "Action id"
    assert sentence_of("ключ") == "ключ"
