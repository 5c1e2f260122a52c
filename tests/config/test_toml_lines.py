"""openenv_gateway.config.toml_lines: the line of each key, whatever the syntax around it."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openenv_gateway.config.toml_lines import error_place, key_lines, line_of

TEXT = '''# a comment
host = "x"  # [not.a.header]

[environments.chess]
note = """
fake = 1
[fake.header]
"""
list = [
  1, # one
  2,
]
a.b . "c d" = { x = 1, y = { z = 2 } }
[environments."demo 2"]
k = 1
[[many]]
n = 1
[[many]]
n = 2
[environments]
last = true'''


def test_each_key_and_header_has_the_line_where_it_begins() -> None:
    lines = key_lines(TEXT)
    assert lines == {
        (): 1,
        ("host",): 2,
        ("environments",): 4,
        ("environments", "chess"): 4,
        ("environments", "chess", "note"): 5,
        ("environments", "chess", "list"): 9,
        ("environments", "chess", "a"): 13,
        ("environments", "chess", "a", "b"): 13,
        ("environments", "chess", "a", "b", "c d"): 13,
        ("environments", "chess", "a", "b", "c d", "x"): 13,
        ("environments", "chess", "a", "b", "c d", "y"): 13,
        ("environments", "chess", "a", "b", "c d", "y", "z"): 13,
        ("environments", "demo 2"): 14,
        ("environments", "demo 2", "k"): 15,
        ("many",): 16,
        ("many", "n"): 17,
        ("environments", "last"): 21,
    }


def test_windows_line_ends_count_as_one() -> None:
    assert key_lines("a = 1\r\nb = 2\r\n")[("b",)] == 2


def test_a_path_without_a_line_has_that_of_the_table_around_it() -> None:
    lines = key_lines("a = 1\n[b]\nc = [1]\n")
    assert [line_of(path, lines) for path in (("b", "missing"), ("b", "c", "0"), ("nothing", "here"), ())] == [2, 3, 1, 1]


KEYS = st.text(st.characters(codec="ascii", categories=["L", "N", "P", "Z"], exclude_characters='"\\'), min_size=1, max_size=5)
VALUES = st.sampled_from(["1", '"x = 1"', "[\n 1,\n 2]", '"""\n[h]\nk = 1\n"""', "{ a = 1 }", "'''\n#'''", "2026-01-01"])


@given(st.lists(st.tuples(KEYS, VALUES, st.sampled_from(["", "\n# c = 1", "\n\n"])), unique_by=lambda row: row[0]))
def test_keys_are_found_between_any_values(rows: list[tuple[str, str, str]]) -> None:
    text, expected = "", {}
    for key, value, tail in rows:
        expected[key] = text.count("\n") + 1
        text += f'"{key}" = {value}{tail}\n'
    lines = key_lines(text)
    assert {key: lines[(key,)] for key in expected} == expected


@pytest.mark.parametrize(
    ("text", "line"),
    [("a = 1\nb = \n", 2), ("a = 1\na = 2", 2), ('a = 1\nb = "', 2), ("a = [\n1,\n", 3)],
    ids=["no value", "a key twice", "an open text at the end", "an open list at the end"],
)
def test_a_syntax_error_has_its_line_and_a_message_without_the_place(text: str, line: int) -> None:
    with pytest.raises(tomllib.TOMLDecodeError) as caught:
        tomllib.loads(text)
    found, message = error_place(caught.value, text)
    assert found == line
    assert message and "line" not in message and "(at" not in message
