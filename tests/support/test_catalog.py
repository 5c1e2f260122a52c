"""testkit.catalog: what was recorded comes out as values, and what was not is said."""

from __future__ import annotations

import pytest
from testkit import catalog


def test_every_environment_is_described_but_those_that_published_no_schema() -> None:
    assert set(catalog.environments()) - set(catalog.described()) == {"calendar_env", "old_server_0.1.1"}
    assert len(catalog.described()) == 21


@pytest.mark.parametrize("env", catalog.described())
def test_a_description_holds_the_served_schemas(env: str) -> None:
    description = catalog.description(env)
    assert description.action == catalog.load(env, "schema")["action"]
    assert description.observation["type"] == "object"


def test_a_server_without_a_schema_has_no_description() -> None:
    with pytest.raises(catalog.NotRecorded, match="calendar_env published no schema"):
        catalog.description("calendar_env")


def test_steps_are_the_exchanges_that_carry_an_action() -> None:
    steps = catalog.steps("connect4_env")
    assert steps[0].send == {"type": "step", "data": {"column": 3}}
    assert steps[0].recv["type"] == "observation"
    assert {pair.send["type"] for pair in steps} == {"step"}


def test_replies_hold_the_refusals_of_a_second_connection_too() -> None:
    codes = [frame["data"]["code"] for frame in catalog.replies("connect4_env") if frame["type"] == "error"]
    assert {"CAPACITY_REACHED", "SESSION_ERROR", "VALIDATION_ERROR"} <= set(codes)


def test_what_is_returned_is_the_callers_own_copy() -> None:
    catalog.load("chess_env", "schema").clear()
    assert "action" in catalog.load("chess_env", "schema")


def test_an_unknown_environment_is_an_error_that_names_the_known_ones() -> None:
    with pytest.raises(catalog.NotRecorded, match="recorded are atari_env"):
        catalog.replies("no_env")
    with pytest.raises(catalog.NotRecorded, match="recorded are atari_env"):
        catalog.load("no_env", "schema")


def test_an_environment_that_was_never_played_has_no_exchanges() -> None:
    assert catalog.exchanges("git_env") == []
