"""The shape of structuredContent, as it is promised."""

from __future__ import annotations

import json
from typing import Any

import pytest
from testkit.toolsets import recorded

from openenv_client.description import Description
from openenv_client.frames import JsonObject
from openenv_gateway.mapping.options import MappingOptions
from openenv_gateway.mapping.tools import build_tools


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
