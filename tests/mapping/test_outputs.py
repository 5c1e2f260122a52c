"""The shape of structuredContent, as it is promised."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from testkit import catalog
from testkit.toolsets import recorded

from openenv_client.description import Description
from openenv_client.frames import JsonObject, Observation, State
from openenv_gateway.mapping.options import MappingOptions
from openenv_gateway.mapping.results import Notes, call_result, observation_result, parse_frame, state_result
from openenv_gateway.mapping.tools import ToolKind, build_tools


def test_the_output_schema_names_the_observations_fields_and_constrains_none() -> None:
    output = recorded("chess_env").find("step").output_schema
    assert list(output["properties"]) == ["observation", "reward", "done", "next", "session_id", "notice", "late"]
    assert output["required"] == ["observation", "done"]
    assert output["properties"]["observation"]["properties"] == {}
    assert "Fields: fen, legal_moves, is_check, result." in output["properties"]["observation"]["description"]


def test_an_observation_with_very_many_fields_is_told_in_part_and_one_without_in_none() -> None:
    def words(observation: JsonObject) -> str:
        tools = build_tools(Description(action={"type": "object"}, observation=observation), MappingOptions())
        return str(tools.find("reset").output_schema["properties"]["observation"]["description"])

    assert "f39, …." in words({"properties": {f"f{n}": {} for n in range(50)}})
    assert "Fields" not in words({"properties": {"done": {}}})
    assert "Fields" not in words({"properties": []})


@pytest.mark.parametrize("place", ["meta", "hidden"])
def test_a_reward_that_the_agent_may_not_see_is_nowhere_in_its_tools(place: Any) -> None:
    for tool in recorded("chess_env", MappingOptions(reward=place)).tools:
        assert "reward" not in json.dumps([tool.description, tool.output_schema])


def test_state_answers_with_the_state() -> None:
    output = recorded("chess_env").find("state").output_schema
    assert list(output["properties"]) == ["state", "session_id", "notice", "late"]


@pytest.mark.parametrize("place", ["visible", "meta", "hidden"])
@pytest.mark.parametrize("env", catalog.described())
def test_every_result_of_every_recorded_reply_is_as_the_output_schema_promises(env: str, place: Any) -> None:
    options = MappingOptions(reward=place)
    tools = recorded(env, options)
    notes = Notes(session_id="h", notice="A new session.", late={"tool": "step", "action": {}, "error": {"message": "m"}})
    promised = {tool.kind: Draft202012Validator(tool.output_schema) for tool in tools.tools}
    frames = [{"type": "observation", "data": {"observation": {}, "reward": True}}, *catalog.replies(env)]
    for frame in (frame for frame in frames if frame["type"] in ("observation", "state")):
        reply = parse_frame(json.dumps(frame))
        if isinstance(reply, State):
            promised[ToolKind.STATE].validate(state_result(reply, options, notes)["structuredContent"])
        else:
            assert isinstance(reply, Observation)
            for result in (observation_result(reply, options, notes), call_result(reply, options, notes)):
                if not result.get("isError"):
                    promised[ToolKind.RESET].validate(result["structuredContent"])
