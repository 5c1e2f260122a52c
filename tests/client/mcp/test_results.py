from __future__ import annotations

import math
from typing import Any

import pytest

from openenv_client.errors import BadReply
from openenv_client.frames import Observation, State
from openenv_client.mcp.results import observed, stated
from openenv_gateway.mapping.notes import Notes
from openenv_gateway.mapping.options import MappingOptions
from openenv_gateway.mapping.verbatim import verbatim_result

SEEN = {"x": 1, "metadata": {"a": 1}, "reward": 1, "done": True}


def result(reply: Observation | State, notes: Notes = Notes(), **options: Any) -> dict[str, Any]:  # noqa: B008  (frozen)
    return verbatim_result(reply, MappingOptions(**options), notes)


@pytest.mark.parametrize("reward", [None, 1, 0.5, True])
def test_an_observation_comes_as_the_environments_frame_had_it(reward: Any) -> None:
    assert observed(result(Observation(SEEN, reward, True, {}))) == {"observation": SEEN, "reward": reward, "done": True}
    with_metadata = observed(result(Observation({}, reward, False, {"steps": 1})))
    assert with_metadata == {"observation": {}, "reward": reward, "done": False, "metadata": {"steps": 1}}


def test_a_reward_that_is_no_number_in_json_is_that_number_again() -> None:
    for reward in (math.inf, -math.inf):
        assert observed(result(Observation({}, reward, False, {})))["reward"] == reward
    assert math.isnan(observed(result(Observation({}, math.nan, False, {})))["reward"])


@pytest.mark.parametrize(("place", "reward"), [("meta", 0.5), ("hidden", None)])
def test_a_reward_in_meta_is_read_and_a_hidden_one_is_none(place: Any, reward: float | None) -> None:
    assert observed(result(Observation({}, 0.5, False, {}), reward=place))["reward"] == reward


def test_remarks_of_the_gateway_stand_beside() -> None:
    late: dict[str, Any] = {"tool": "step", "observation": {}, "reward": None, "done": False}
    payload = observed(result(Observation({}, None, False, {}), Notes(notice="A remark.", late=late, session_id="h" * 20)))
    assert payload == {"observation": {}, "reward": None, "done": False, "notice": "A remark.", "late": late}


def test_a_state_is_the_state_object() -> None:
    assert stated(result(State({"n": 1}))) == {"n": 1}


@pytest.mark.parametrize(
    ("content", "field"),
    [
        (None, "structuredContent"),
        ({}, "observation"),
        ({"observation": {}, "reward": "much", "done": False}, "reward"),
        ({"observation": {}, "done": 1}, "done"),
    ],
)
def test_what_is_no_observation_is_a_bad_reply(content: Any, field: str) -> None:
    with pytest.raises(BadReply) as bad:
        observed({"structuredContent": content})
    assert bad.value.field == field


def test_what_is_no_state_is_a_bad_reply() -> None:
    with pytest.raises(BadReply, match="state is list"):
        stated({"structuredContent": {"state": []}})
