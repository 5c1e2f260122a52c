"""What the gateway tells beside the environment's answer, and where the agent may see a reward."""

from __future__ import annotations

import math

import pytest

from openenv_client.frames import JsonObject
from openenv_gateway.mapping.notes import Notes, finite, late_meta, observation_shown, told_reward
from openenv_gateway.mapping.options import MappingOptions

VISIBLE, META, HIDDEN = (MappingOptions(reward=place) for place in ("visible", "meta", "hidden"))
LATE: JsonObject = {
    "tool": "step",
    "action": {"n": 1},
    "observation": {"text": "b", "reward": 2.0},
    "reward": 2.0,
    "done": False,
}


def test_only_what_is_set_is_told() -> None:
    assert Notes().shown(VISIBLE) == {}
    assert Notes().meta() == {}
    notes = Notes(session_id="abc", notice="A session was opened.", episode="e1", step=0, lane="l1")
    assert notes.shown(VISIBLE) == {"session_id": "abc", "notice": "A session was opened."}
    assert notes.meta() == {"openenv/episode": "e1", "openenv/step": 0, "openenv/session": "l1"}


def test_a_late_outcome_is_told_without_what_the_agent_may_not_see() -> None:
    hidden = {"tool": "step", "action": {"n": 1}, "observation": {"text": "b"}, "done": False}
    assert Notes(late=LATE).shown(VISIBLE)["late"] == {**hidden, "reward": 2.0}
    assert Notes(late=LATE).shown(META)["late"] == hidden
    assert Notes(late=LATE).shown(HIDDEN)["late"] == hidden
    assert (late_meta(LATE, VISIBLE), late_meta(LATE, HIDDEN)) == ({}, {})
    assert late_meta(LATE, META) == {"openenv/late_reward": 2.0}
    assert (late_meta(None, META), late_meta({"error": {}}, META)) == ({}, {})


def test_a_late_reward_that_is_no_json_number_is_null_and_told_in_meta() -> None:
    late = {**LATE, "reward": math.inf}
    assert Notes(late=late).shown(VISIBLE)["late"]["reward"] is None
    assert late_meta(late, META) == {"openenv/late_reward": "Infinity"}


def test_a_late_failure_keeps_its_code_and_a_bounded_message() -> None:
    late: JsonObject = {"tool": "step", "error": {"code": "EXECUTION_ERROR", "message": "x" * 5000}}
    error = Notes(late=late).shown(VISIBLE)["late"]["error"]
    assert error["code"] == "EXECUTION_ERROR"
    assert error["message"].startswith("x" * 2000 + "\n[cut")
    assert Notes(late={"tool": "step", "error": {"code": "A"}}).shown(VISIBLE)["late"]["error"]["message"] == ""


@pytest.mark.parametrize(
    ("copy", "reward"), [(0.5, 0.5), (1, 1.0), (None, 0.5), ("NaN", math.nan), ("-Infinity", -math.inf), (True, True)]
)
def test_a_copy_of_the_reward_is_dropped(copy: object, reward: float) -> None:
    assert observation_shown({"text": "a", "reward": copy, "done": False}, reward, False, VISIBLE) == {"text": "a"}


@pytest.mark.parametrize(("own", "reward"), [(1.5, 0.5), (True, 1), (1, True), ("0.5", 0.5), (0.5, None)])
def test_an_observations_own_reward_is_kept_where_rewards_are_visible(own: object, reward: float | None) -> None:
    assert observation_shown({"reward": own, "done": "yes"}, reward, False, VISIBLE) == {"reward": own, "done": "yes"}
    assert observation_shown({"reward": own, "done": "yes"}, reward, False, HIDDEN) == {"done": "yes"}


def test_a_reward_is_a_json_number_or_named() -> None:
    rewards = (None, 1, 0.5, True, math.nan, math.inf)
    assert [finite(reward) for reward in rewards] == [None, 1, 0.5, True, None, None]
    assert [told_reward(reward) for reward in rewards] == [None, 1, 0.5, True, "NaN", "Infinity"]
