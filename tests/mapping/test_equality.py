"""Types and equality as JSON means them."""

from __future__ import annotations

from typing import Any

import pytest

from openenv_gateway.mapping.equality import identity, type_of


@pytest.mark.parametrize(
    ("value", "name"),
    [(None, "null"), (True, "boolean"), (1, "integer"), (1.0, "integer"), (1.5, "number"), ("a", "string"), ({}, "object")],
)
def test_every_value_has_its_narrowest_type(value: Any, name: str) -> None:
    assert type_of(value) == name


@pytest.mark.parametrize(("one", "other"), [(1, 1.0), ({"a": 1, "b": [2]}, {"b": [2.0], "a": 1}), ([], []), (None, None)])
def test_equal_values_have_one_identity(one: Any, other: Any) -> None:
    assert identity(one) == identity(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [(1, True), (0, False), ("1", 1), ([], {}), ([1, 2], [2, 1]), ([["boolean", 1]], [True]), (["boolean", 1], True)],
)
def test_values_that_only_python_finds_equal_are_told_apart(one: Any, other: Any) -> None:
    assert identity(one) != identity(other)
