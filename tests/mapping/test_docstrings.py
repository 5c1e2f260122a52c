"""What a docstring says of attributes reaches the attributes, and its prose stays prose."""

from __future__ import annotations

import pytest
from testkit import catalog

from openenv_gateway.mapping.docstrings import split_docstring


def test_recorded_docstrings_are_split_into_prose_and_attributes() -> None:
    prose, attributes = split_docstring(catalog.description("git_env").action["description"])
    assert prose.startswith("Action for Git environment operations.")
    assert "Attributes" not in prose
    assert attributes["command"] == "Git command to execute (for execute_git_command)"
    assert list(attributes) == ["action_type", "repo_name", "target_dir", "command", "working_dir"]


def test_attributes_over_several_lines_are_joined_and_what_follows_is_prose() -> None:
    text = "Moves.\n\n    Args:\n        x (int): the column,\n            from 0\n\n        **y: the row\n\n    Careful."
    assert split_docstring(text) == ("Moves.\n\nCareful.", {"x": "the column, from 0", "y": "the row"})


@pytest.mark.parametrize("text", ["", "Prose: with a colon.", "Attributes:\n\nnothing indented", "A\nAttributes:\n    - b"])
def test_a_docstring_without_such_a_section_is_prose_as_a_whole(text: str) -> None:
    assert split_docstring(text) == (text, {})
