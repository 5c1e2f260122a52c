"""What came is shown briefly, whatever it is."""

from __future__ import annotations

from typing import Any

import pytest

from openenv_gateway.mapping.faults import Budget, Fault, TooMuchWork, shortened, shown


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("é", '"é" (string)'),
        ({"a": [1, None]}, '{"a": [1, null]} (object)'),
        (1.5, "1.5 (number)"),
        ("x" * 300, '"' + "x" * 199 + "… (302 characters) (string)"),
        (object, "a value that cannot be shown (type) (array)"),
    ],
)
def test_a_value_is_shown_as_json_with_its_type(value: Any, text: str) -> None:
    assert shown(value) == text


def test_a_value_too_deep_for_json_is_named_only() -> None:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    assert shown(value) == "a value that cannot be shown (list) (array)"
    while value:  # taken apart by hand, since the interpreter would do it recursively
        value = value.pop()


def test_a_place_is_written_as_people_write_it() -> None:
    fault = Fault("x", 1).under("column").under(0).under("moves")
    assert fault.place == "moves[0].column"
    assert Fault("x", 1).under(0).place == "[0]"
    assert Fault("x", 1).place == ""


def test_a_short_text_stays() -> None:
    assert shortened("abc", 3) == "abc"


def test_a_budget_can_be_spent_once() -> None:
    budget = Budget(2)
    budget.spend(2)
    with pytest.raises(TooMuchWork):
        budget.spend(1)
