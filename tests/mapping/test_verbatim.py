from __future__ import annotations

from typing import Any

import mcp_types
import pytest
from jsonschema import Draft202012Validator

from openenv_client.errors import EpisodeLost
from openenv_client.frames import Observation, State
from openenv_gateway.mapping.failures import failure_of, failure_result
from openenv_gateway.mapping.notes import Notes
from openenv_gateway.mapping.options import MappingOptions
from openenv_gateway.mapping.verbatim import LATE, verbatim_result, with_late_outcome
from openenv_gateway_schemas import load

PICTURE = "iVBORw0KGgo" + "A" * 4000
RESULTS = Draft202012Validator(load("tool_result"))
SHOWN = MappingOptions(max_result_bytes=1024)


def judged(result: dict[str, Any]) -> dict[str, Any]:
    mcp_types.CallToolResult.model_validate(result)
    RESULTS.validate(result["structuredContent"])
    return result


def test_an_observation_is_neither_cut_nor_are_pictures_taken_out_nor_duplicates_dropped() -> None:
    observation = {"pixels": PICTURE, "screen": [0, 255] * 3000, "screen_shape": [20, 100, 3], "reward": 1.5, "done": False}
    result = judged(verbatim_result(Observation(observation, 1.5, False, {"steps": 1}), SHOWN, Notes(session_id="h" * 20)))
    assert result["structuredContent"] == {
        "observation": observation, "reward": 1.5, "done": False, "session_id": "h" * 20
    }  # fmt: skip
    assert (result["content"], result["isError"], result["_meta"]) == ([], False, {"openenv/metadata": {"steps": 1}})


def test_a_tools_failure_is_an_observation_as_any_other() -> None:
    observation = {"tool_name": "say", "result": None, "error": {"error_type": "tool_not_found", "message": "no such tool"}}
    result = judged(verbatim_result(Observation(observation, 0.1, True, {}), SHOWN, Notes()))
    assert result["structuredContent"] == {"observation": observation, "reward": 0.1, "done": True}
    assert result["_meta"] == {}


@pytest.mark.parametrize(("place", "meta"), [("meta", {"openenv/reward": 2.0}), ("hidden", {})])
def test_a_reward_that_the_operator_does_not_show_is_not_shown_here(place: Any, meta: dict[str, Any]) -> None:
    options = MappingOptions(reward=place)
    result = judged(verbatim_result(Observation({"x": 1, "reward": 2.0}, 2.0, False, {}), options, Notes()))
    assert result["structuredContent"] == {"observation": {"x": 1}, "done": False}
    assert result["_meta"] == meta


def test_a_reward_that_json_cannot_say_is_told_by_its_name() -> None:
    result = judged(verbatim_result(Observation({}, float("nan"), False, {}), SHOWN, Notes()))
    assert (result["structuredContent"]["reward"], result["_meta"]) == (None, {"openenv/reward": "NaN"})


def test_a_state_is_whole() -> None:
    late = {"tool": "step", "observation": {"reward": 1.0}, "reward": 1.0, "done": False}
    options = MappingOptions(reward="meta", max_result_bytes=1024)
    result = judged(verbatim_result(State({"map": PICTURE}), options, Notes(late=late, lane="lane")))
    assert result["structuredContent"]["state"] == {"map": PICTURE}
    assert result["structuredContent"]["late"] == {"tool": "step", "done": False, "observation": {}}
    assert result["_meta"] == {"openenv/session": "lane", "openenv/late_reward": 1.0}


def test_a_failure_has_a_late_outcome_as_data_too() -> None:
    late = {"tool": "step", "observation": {"pixels": PICTURE}, "reward": 1.0, "done": False}
    notes = Notes(late=late)
    plain = failure_result(failure_of(EpisodeLost("gone")), notes)
    told = with_late_outcome(plain, notes, SHOWN)
    assert told == {**plain, "_meta": {**plain["_meta"], LATE: late}}
    assert with_late_outcome(plain, Notes(), SHOWN) is plain
